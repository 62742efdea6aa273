// What the programs of the Node clients share. A program gets its input as JSON in its first argument and prints one
// line of JSON for each case.

/** The address, keys and models that the program uses. */
export const input = JSON.parse(process.argv[2]);

export const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
export const PERSON = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

/** Runs the cases one after the other. A case that throws prints its error, and the others still run. */
export async function run(cases) {
  for (const [name, play] of Object.entries(cases)) {
    const outcome = await play().then(
      (result) => ({ result }),
      (error) => ({ failure: error instanceof Error ? error.stack : String(error) }),
    );
    console.log(JSON.stringify({ case: name, ...outcome }));
  }
}

/** The error that `call` must end with, as `describe` reads it. */
export async function refused(call, describe) {
  const answer = await call().then(
    () => null,
    (error) => describe(error),
  );
  if (answer === null) throw new Error('the call was not refused');
  return answer;
}
