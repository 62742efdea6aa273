import { combine, Optional, Port, Secret, Setting, Text } from './decorators';
import { describeSettings } from './describe-settings';
import { readSettings } from './read-settings';

const Password = (byDefault?: string) =>
  combine(Setting('Password of the server.', { byDefault }), Secret(), Text(/^\S{8,}$/, 'at least 8 characters'));

class Server {
  @Setting('Port of the server.') @Port() PORT: number = 8080;
  @Setting('Name of the server.') @Text(/^\w+$/, 'a word') NAME!: string;
  @Password() PASSWORD!: string;
  @Setting('Prefix of each name.') @Text(/^\w*$/, 'letters') PREFIX: string = '';
}

class Client {
  @Optional() @Password('asked for') PASSWORD?: string;
  @Setting('Name of the user.') @Optional() @Text(/^\w+$/, 'a word') USER?: string;
}

class Undescribed {
  @Port() PORT: number = 1;
}

it('a settings class describes the default, the values and the purpose of each setting', () => {
  expect(describeSettings(Server)).toEqual([
    expect.objectContaining({ name: 'PORT', byDefault: '`8080`', values: 'a whole number from 0 to 65535' }),
    { name: 'NAME', byDefault: 'required', values: 'a word', description: 'Name of the server.', secret: false },
    expect.objectContaining({ name: 'PASSWORD', byDefault: 'required', values: 'at least 8 characters', secret: true }),
    expect.objectContaining({ name: 'PREFIX', byDefault: '–' }),
  ]);
});

it('a setting that may be absent describes its absence', () => {
  expect(describeSettings(Client)).toEqual([
    expect.objectContaining({ name: 'PASSWORD', byDefault: 'asked for', description: 'Password of the server.' }),
    expect.objectContaining({ name: 'USER', byDefault: '–' }),
  ]);
});

it('combined decorators check like separate ones', () => {
  expect(readSettings({}, [Client])).toEqual({});
  expect(() => readSettings({ PASSWORD: 'short' }, [Client])).toThrow(/^PASSWORD must be at least 8 characters$/);
});

it('a setting without a description is found', () => {
  expect(() => describeSettings(Undescribed)).toThrow(/^Undescribed.PORT has no description/);
});
