/** Node's codes of a server's certificate that it does not accept. */
const NOT_ACCEPTED =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE))/;
const CURES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'renew it',
  CERT_NOT_YET_VALID: 'correct the clock of this machine, or renew it',
  ERR_TLS_CERT_ALTNAME_INVALID: 'correct the host, or make one for this host',
  HOSTNAME_MISMATCH: 'correct the host, or make one for this host',
};

/**
 * What to do about the certificate of a server. Undefined: the error is another one.
 * @param authority where its authority is named
 */
export function certificateCure(error: object, authority: string): string | undefined {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !NOT_ACCEPTED.test(code)) return undefined;
  return CURES[code] ?? `name its authority in ${authority}`;
}

/**
 * Why the server has refused our TLS, such as for lack of a client certificate. Undefined: the error is another one.
 * OpenSSL's own message has a file and several lines.
 */
export function tlsRefusal(error: object): string | undefined {
  const { code } = error as { code?: unknown };
  const alert = /^ERR_SSL_(\w*ALERT_\w+)$/.exec(String(code))?.[1];
  return alert?.toLowerCase().replaceAll('_', ' ');
}
