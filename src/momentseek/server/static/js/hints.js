// The query language, told where it is typed.

/** Each: what to write, what it means, and how to recognise that somebody is writing it. */
export const HINTS = [
  ["a dog runs", "plain words: what is seen, said, written, or in the file's name", null],
  ['"good boy"', "exactly these words, said one after the other", /^-?"/],
  ["said:dog", "search only what is said", /^-?said:/],
  ["text:exit", "search only what is written in the picture", /^-?text:/],
  ["described:kite", "search only what a model says of a scene", /^-?described:/],
  ["name:porto", "search only file names", /^-?name:/],
  ["2:dog 0.5:park", "weights, between 0 and 99", /^-?\d+(\.\d+)?:(?!\d)/],
  ["-leash", "avoid moments that show this", /^-\p{L}/u],
  ["in:holiday*", "only videos whose name matches", /^-?in:/],
  ["after:2023", "by the date of the recording, or of the file; also 2023-12-31, or an age such as 7d, 2w, 3m, 1y", /^(after|before):/],
  ["before:2024-05", "before the beginning of that day, month or year", null],
];

/** The part of a query around the caret: quotes hold words together. */
export function partAt(text, caret) {
  for (const found of text.matchAll(/-?[\w.]*:?"[^"]*"?|\S+/g)) {
    if (found.index <= caret && caret <= found.index + found[0].length) return found[0];
  }
  return "";
}

/** What the part at the caret means, or nothing if it is plain. */
export function hintFor(text, caret) {
  const part = partAt(text, caret);
  const found = HINTS.find(([, , sign]) => sign?.test(part));
  return found ? `${found[0]}  ${found[1]}` : "";
}
