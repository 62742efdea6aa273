import { certificateCure, tlsRefusal } from './certificate-cure';

it.each([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'name its authority in the file'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'name its authority in the file'],
  ['CERT_HAS_EXPIRED', 'renew it'],
  ['CERT_NOT_YET_VALID', 'correct the clock of this machine, or renew it'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'correct the host, or make one for this host'],
  // Our own certificate, which the server does not accept.
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', undefined],
  ['ECONNREFUSED', undefined],
  [undefined, undefined],
])('the cure for %s is: %s', (code, cure) => {
  expect(certificateCure({ code }, 'the file')).toBe(cure);
});

it.each([
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tlsv13 alert certificate required'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tlsv1 alert unknown ca'],
  ['CERT_HAS_EXPIRED', undefined],
  [undefined, undefined],
])('the refusal of a server with %s is: %s', (code, refusal) => {
  expect(tlsRefusal({ code })).toBe(refusal);
});
