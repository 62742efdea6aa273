// What a container's HEALTHCHECK runs: succeeds when TOLLGATE_HEALTH_URL answers 2xx. The image has no curl, and needs none.
const TIMEOUT_MS = 2_000;
const answer = await fetch(process.env.TOLLGATE_HEALTH_URL, { signal: AbortSignal.timeout(TIMEOUT_MS) });
if (!answer.ok) throw new Error(`${process.env.TOLLGATE_HEALTH_URL} answered ${answer.status}`);
