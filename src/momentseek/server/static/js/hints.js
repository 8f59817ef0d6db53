// Hints about the query language, shown while somebody types.

/** For each hint: an example, what it means, and a pattern that recognises it while it is being typed. */
export const HINTS = [
  ["a dog runs", "plain words: what is seen, said, written, or in the file's name", null],
  ['"good boy"', "exactly these words, said one after the other", /^-?"/],
  ["said:dog", "search only what is said", /^-?said:/],
  ["text:exit", "search only what is written in the picture", /^-?text:/],
  ["described:kite", "search only a model's descriptions of scenes", /^-?described:/],
  ["name:porto", "search only file names", /^-?name:/],
  ["2:dog 0.5:park", "weights, between 0 and 99", /^-?\d+(\.\d+)?:(?!\d)/],
  ["-leash", "avoid moments that show this", /^-\p{L}/u],
  ["in:holiday*", "only videos whose name matches", /^-?in:/],
  ["after:2023", "by the date of the recording, or of the file; also 2023-12-31, or an age such as 7d, 2w, 3m, 1y", /^(after|before):/],
  ["before:2024-05", "before the beginning of that day, month or year", null],
];

/** The part of a query around the caret; words in quotes are one part. */
export function partAt(text, caret) {
  for (const found of text.matchAll(/-?[\w.]*:?"[^"]*"?|\S+/g)) {
    if (found.index <= caret && caret <= found.index + found[0].length) return found[0];
  }
  return "";
}

/** The hint for the part at the caret; empty if it is plain words. */
export function hintFor(text, caret) {
  const part = partAt(text, caret);
  const found = HINTS.find(([, , sign]) => sign?.test(part));
  return found ? `${found[0]}  ${found[1]}` : "";
}
