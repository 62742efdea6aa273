import { readSettings } from '@tollgate/runtime';
import { DatabaseSettings } from './database-settings';

describe('DATABASE_URL', () => {
  it.each([
    'postgres://billing:secret@db:5432/tollgate',
    'postgresql://billing:a%2Fb%23c@[::1]/tollgate?sslmode=verify-full&sslrootcert=/not/here',
    'postgres://postgres:secret@/tollgate?host=/run/postgresql&port=5433',
    'postgres:///tollgate',
    'postgres://db/x?sslmode=disable',
    'postgres://db/x?ssl=true&sslcert=/a&sslkey=/b',
  ])('may be %s', (url) => expect(readSettings({ DATABASE_URL: url }, [DatabaseSettings]).DATABASE_URL).toBe(url));

  it.each([
    ...['mysql://db/x', 'postgres://u:kept/it@db/x', 'postgres://u:kept#it@db/x', 'postgres://u:1/kept@db/x'],
    'postgres://u:1?kept@db/x',
  ])('is refused as %s, with the remedy and without the password', (url) => {
    const read = () => readSettings({ DATABASE_URL: url }, [DatabaseSettings]);
    expect(read).toThrow(/^DATABASE_URL must be a URL such as .* \(in the password \/ is %2F/);
    expect(read).not.toThrow(/kept/);
  });

  it('is refused with a file of authorities that has none', () => {
    const url = `postgres://u:p@db/x?sslmode=verify-full&sslrootcert=${__filename}`;
    expect(() => readSettings({ DATABASE_URL: url }, [DatabaseSettings])).toThrow(
      /^DATABASE_URL: the file of sslrootcert must be a text in PEM with at least one certificate: it has none$/,
    );
  });

  // pg ignores an unknown name, and would connect without TLS. A value that it does not know ends the process.
  it.each(['sslMode=verify-full', 'tls=true', 'sslmode=', 'sslmode=verify_full', 'ssl=false', 'ssl=kept'])(
    'is refused with the option of TLS %s',
    (option) => {
      const read = () => readSettings({ DATABASE_URL: `postgres://u:p@db/x?${option}` }, [DatabaseSettings]);
      const [name = ''] = option.split('=');
      expect(read).toThrow(`DATABASE_URL: "${name}" is no option of TLS, or has an unknown value. The options are `);
      expect(read).not.toThrow(/kept/);
    },
  );
});
