import { serverUser } from './run-as';

it('PostgreSQL gets no secret of this process, which its user could read in /proc', async () => {
  const before = { ...process.env };
  Object.assign(process.env, { TOLLGATE_OPERATOR_SECRET: 'secret', VLLM_API_KEY: 'key', TZ: 'UTC' });
  try {
    const names = (await serverUser([]).run('env', [])).split('\n').map((line) => line.split('=', 1)[0]);
    expect(names).toEqual(expect.arrayContaining(['PATH', 'TZ', 'LC_ALL', 'MALLOC_TRIM_THRESHOLD_']));
    expect(names).not.toContain('TOLLGATE_OPERATOR_SECRET');
    expect(names).not.toContain('VLLM_API_KEY');
  } finally {
    for (const name of ['TOLLGATE_OPERATOR_SECRET', 'VLLM_API_KEY', 'TZ']) delete process.env[name];
    Object.assign(process.env, before);
  }
});
