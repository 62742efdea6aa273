import { failureOfStatus } from './failure';

const refused = (body: unknown) => failureOfStatus(422, undefined, JSON.stringify(body));

describe('the message of a backend that refuses a request', () => {
  it('is read from a list of FastAPI, with the field that is at fault', () => {
    const detail = [
      { type: 'less_than_equal', loc: ['body', 'temperature'], msg: 'Input should be less than or equal to 2' },
      { type: 'missing', loc: ['body', 'messages', 0, 'role'], msg: 'Field required' },
    ];
    expect(refused({ detail })).toEqual({
      kind: 'refused',
      message: 'temperature: Input should be less than or equal to 2; messages.0.role: Field required',
      param: 'temperature',
      code: null,
    });
  });

  it.each([
    [{ detail: 'too long' }, 'too long', null],
    [{ detail: [{ msg: 'no place' }] }, 'no place', ''],
    [{ detail: [] }, null, null],
    [{ detail: [null, 7, { loc: 3, msg: [] }] }, null, null],
    [{ error: { message: 'no', param: 'n', code: 'c' } }, 'no', 'n'],
    [{ error: 'plain' }, 'plain', null],
    [{ message: 'bare' }, 'bare', null],
  ])('is read from %j', (body, message, param) => {
    expect(refused(body)).toMatchObject({ message, param: param || null });
  });
});
