/** A title, a new line, and a command of 8-bit terminals. */
export const HOSTILE = 'a\u001b]0;x\u0007\nb\u007f\u009b2J\tc';

/** The same as the programs print it. */
export const SHOWN = 'a\ufffd]0;x\ufffd\ufffdb\ufffd\ufffd2J\ufffdc';

/** Control characters, except new lines. */
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
export const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
