// What was started is stopped in the opposite order, whatever ends the run.

const steps = new Set();

/**
 * Registers a step for the end of the run.
 * @param {() => Promise<void>} step
 * @returns {() => Promise<void>} runs it earlier; it runs once
 */
export function atEnd(step) {
  let done;
  const once = () => {
    steps.delete(once);
    return (done ??= step());
  };
  steps.add(once);
  return once;
}

/** Runs what is registered, the last first. A step that fails does not keep the others. */
export async function takeDown() {
  for (const step of [...steps].reverse())
    await step().catch((error) => process.stderr.write(`while stopping: ${error.message}\n`));
}
