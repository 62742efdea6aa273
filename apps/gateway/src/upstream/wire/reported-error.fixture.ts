/** Members `error` that report an error. */
export const ERRORS = ['oom', true, 1, {}, { message: 'x' }, { code: 500, message: '' }, ['x'], { error: { a: 1 } }];
/** Members `error` that report none. */
export const NO_ERRORS = [null, false, '', 0, [], { code: 0, message: '', type: null, details: {} }];
