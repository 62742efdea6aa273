import { ConfigError, DEFAULTS, readSettings } from './settings';
import { NO_FAULTS, planFaults } from './fault-rules';

describe('settings', () => {
  it('have a default for every field, and models inherit the configured defaults', () => {
    expect(readSettings({})).toEqual({
      strict: false,
      apiKey: null,
      recordRequests: 0,
      defaults: DEFAULTS,
      models: new Map(),
    });
    const { models } = readSettings({
      defaults: { answerTokens: 5 },
      models: { a: {}, b: { answerTokens: 6, tokensPerSecond: 0.5 } },
    });
    expect(models.get('a')).toEqual({ ...DEFAULTS, answerTokens: 5 });
    expect(models.get('b')).toEqual({ ...DEFAULTS, answerTokens: 6, tokensPerSecond: 0.5 });
  });

  it.each<[unknown, string]>([
    [[], 'must be an object'],
    [{ model: {} }, 'model: is unknown'],
    [{ strict: 'yes' }, 'strict: must be true or false'],
    [{ defaults: { answerTokens: 0 } }, 'defaults.answerTokens: must be an integer from 1'],
    [{ models: { m: { tokensPerSecond: '9' } } }, 'models.m.tokensPerSecond: must be a number'],
    [{ models: { m: { speed: 9 } } }, 'models.m.speed: is unknown'],
    [{ models: { m: { faults: {} } } }, 'models.m.faults: must be a list'],
    [{ models: { m: { faults: [{ kind: 'slow' }] } } }, 'models.m.faults.0.kind: must be one of status, cut'],
    [{ models: { m: { faults: [{ kind: 'status' }] } } }, 'models.m.faults.0.status: is missing'],
    [{ models: { m: { faults: [{ kind: 'status', status: 418 }] } } }, 'models.m.faults.0.status: must be one of 400'],
    [{ models: { m: { faults: [{ kind: 'cut', delayMs: 1 }] } } }, 'models.m.faults.0.delayMs: is unknown'],
    [
      { models: { m: { faults: [{ kind: 'missingUsage', every: 0 }] } } },
      'models.m.faults.0.every: must be an integer from 1',
    ],
  ])('%j are refused with the path of the wrong field', (config, message) => {
    expect(() => readSettings(config)).toThrow(ConfigError);
    expect(() => readSettings(config)).toThrow(message);
  });
});

describe('faults', () => {
  it('apply to all requests, the first ones, or each k-th, and several apply at once', () => {
    const hit = (rule: { first?: number; every?: number }) =>
      [1, 2, 3, 4, 5, 6].filter((ordinal) => planFaults([{ kind: 'missingUsage', ...rule }], ordinal).missingUsage);
    expect(hit({})).toEqual([1, 2, 3, 4, 5, 6]);
    expect(hit({ first: 2 })).toEqual([1, 2]);
    expect(hit({ every: 3 })).toEqual([3, 6]);
    expect(hit({ first: 4, every: 2 })).toEqual([2, 4]);
    expect(
      planFaults(
        [
          { kind: 'cut', afterChunks: 3 },
          { kind: 'slowHeaders', delayMs: 5 },
        ],
        1,
      ),
    ).toEqual({ ...NO_FAULTS, cutAfterChunks: 3, headersDelayMs: 5 });
  });
});
