// A picture from this device, made small enough to send as text.

const LONG_SIDE = 400;
const MAX_CHARACTERS = 60000;

/** Scale a picture down and return it as a JPEG in base64; rejects files that are not pictures. */
export async function pictureText(file) {
  const image = await createImageBitmap(file);
  for (let side = LONG_SIDE; side >= 50; side /= 2) {
    const share = Math.min(1, side / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(image.width * share));
    canvas.height = Math.max(1, Math.round(image.height * share));
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const text = canvas.toDataURL("image/jpeg", 0.85).split(",")[1];
    if (text.length <= MAX_CHARACTERS) return text;
  }
  throw new Error("too large");
}
