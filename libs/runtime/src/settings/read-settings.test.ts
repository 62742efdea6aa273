import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Flag, OneOf, Optional, Port, Secret, Text } from './decorators';
import { readSettings, SettingsError, type ChecksItself } from './read-settings';

class Server implements ChecksItself {
  @Text(/^\w+$/, 'a word') NAME!: string;
  @Port() PORT: number = 8080;
  @Flag() TLS: boolean = false;
  @Optional() @OneOf('plain', 'scram') MECHANISM?: string;
  @Secret() @Optional() @Text(/^\S{8,}$/, 'at least 8 characters') PASSWORD?: string;

  problems(): string[] {
    return this.MECHANISM && !this.PASSWORD ? ['MECHANISM is set: PASSWORD must be, too'] : [];
  }
}

class Other {
  @Port() OTHER_PORT: number = 1;
}

const linesOf = (env: NodeJS.ProcessEnv): string[] => {
  try {
    readSettings(env, [Server, Other]);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as Error).message.split('\n');
  }
};

describe('settings', () => {
  it('are read from all classes together, with types and defaults; an empty one counts as unset', () => {
    const settings = readSettings({ NAME: 'x', PORT: '', TLS: 'true', OTHER_PORT: '7', UNKNOWN: '1' }, [Server, Other]);
    expect(settings).toMatchObject({ NAME: 'x', PORT: 8080, TLS: true, OTHER_PORT: 7 });
    expect(settings).not.toHaveProperty('UNKNOWN');
  });

  it('give one line for each invalid setting of any class, with its name and form, and never its value', () => {
    expect(
      linesOf({ PORT: '8o80', TLS: 'yes', MECHANISM: 'md5', PASSWORD: 'pass', OTHER_PORT: '70000' }).sort(),
    ).toEqual([
      'MECHANISM must be one of plain, scram',
      'NAME is not set: it must be a word',
      'OTHER_PORT must be a whole number from 0 to 65535',
      'PASSWORD must be at least 8 characters',
      'PORT must be a whole number from 0 to 65535',
      'TLS must be true or false',
    ]);
  });

  it('are checked for contradictions when each is valid by itself', () => {
    expect(linesOf({ NAME: 'x', MECHANISM: 'plain' })).toEqual(['MECHANISM is set: PASSWORD must be, too']);
  });

  it('may be in a file if they are secrets; the variable takes precedence', () => {
    const directory = mkdtempSync(join(tmpdir(), 'settings-'));
    try {
      const file = join(directory, 'password');
      writeFileSync(file, 'from-a-file\n');
      expect(readSettings({ NAME: 'x', PASSWORD_FILE: file }, [Server]).PASSWORD).toBe('from-a-file');
      expect(readSettings({ NAME: 'x', PASSWORD_FILE: file, PASSWORD: 'from-here' }, [Server]).PASSWORD).toBe(
        'from-here',
      );
      expect(linesOf({ NAME: 'x', PASSWORD_FILE: join(directory, 'none') })).toEqual([
        expect.stringMatching(/^PASSWORD_FILE: .*none cannot be read \(there is no such file or directory\)$/),
      ]);
      expect(linesOf({ NAME_FILE: file })).toEqual(['NAME is not set: it must be a word']);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
