/** A title, a new line, a command of 8-bit terminals, a line separator, and texts from right to left. */
export const HOSTILE = 'a\u001b]0;x\u0007\nb\u007f\u009b2J\tc\u2028\u202ed\u2066\u200f';

/** The same as the programs print it. */
export const SHOWN = String.raw`a\u001b]0;x\u0007\nb\u007f\u009b2J\tc\u2028\u202ed\u2066\u200f`;

/** Control characters, except new lines, and marks of direction. */
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
export const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]|[\u2028\u2029]|\p{Bidi_Control}/u;
