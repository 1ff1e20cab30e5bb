/** The note at the end is about name resolution and is usually empty. */
const NO_CONNECTION = /^No connection established\. Last error: (?<reason>[^]*?)\.?(?: Resolution note:[^]*)?$/;
/** The match begins with the first blank of a run: to try each of them would take quadratic time. */
const TIME_AT_END = /(?<!\s)\s*\(\d{4}-[\d-]+T[\d:.]+Z\)$/;
/** An error of OpenSSL: its number, where in the library it was found, its text, the source line, and more. */
const OPENSSL = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:(?<text>[^:]+):/;

/**
 * Why there is no connection, from the details of a status of grpc-js: without the time, which differs for each
 * attempt, and without what only developers of OpenSSL understand. Undefined for details that report something else.
 */
export function connectionFailure(details: string): string | undefined {
  const reason = NO_CONNECTION.exec(details)
    ?.groups?.['reason']?.replace(TIME_AT_END, '')
    .replace(/^Error(?: \[\w+\])?: /, '')
    .trim();
  return reason && (OPENSSL.exec(reason)?.groups?.['text'] ?? reason);
}
