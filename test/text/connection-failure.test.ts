import { connectionFailure } from '../../src/text/connection-failure';

const AT = '(2026-02-03T04:05:06.789Z)';
const OPENSSL =
  '802CEC75BA7F0000:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../x.c:1601:SSL alert number 116\n';

test.each([
  [`connect ECONNREFUSED 127.0.0.1:1 ${AT}. Resolution note: `, 'connect ECONNREFUSED 127.0.0.1:1'],
  ['Error: unable to verify the first certificate. Resolution note: ', 'unable to verify the first certificate'],
  [
    "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Host: a. is not in the cert's altnames: DNS:b. Resolution note: ",
    "Host: a. is not in the cert's altnames: DNS:b",
  ],
  [`${OPENSSL} ${AT}. Resolution note: `, 'tlsv13 alert certificate required'],
  [`Error: ${OPENSSL}. Resolution note: `, 'tlsv13 alert certificate required'],
  [`Failed to connect ${AT}. Resolution note: `, 'Failed to connect'],
  ['Failed to connect', 'Failed to connect'],
])('the reason of the failed connection in "No connection established. Last error: %s" is "%s"', (details, reason) => {
  expect(connectionFailure(`No connection established. Last error: ${details}`)).toBe(reason);
});

// It takes minutes in quadratic time.
test('many blanks are handled in linear time', () => {
  const reason = `x${' '.repeat(1_000_000)}x`;
  expect(connectionFailure(`No connection established. Last error: ${reason}`) === reason).toBe(true);
});

test('details of another failure are no reason of a failed connection', () => {
  expect(connectionFailure('Name resolution failed for target dns:x')).toBeUndefined();
});
