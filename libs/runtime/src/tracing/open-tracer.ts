import type { Tracer } from './tracer';
import type { TracingSettings } from './tracing-settings';

/** Null without TOLLGATE_TRACES_URL: then nothing of OpenTelemetry is loaded. */
export async function openTracer(settings: TracingSettings, service: string): Promise<Tracer | null> {
  const { TOLLGATE_TRACES_URL: url } = settings;
  if (url === undefined) return null;
  const { OtlpTracer } = await import('./otlp-tracer.js');
  return new OtlpTracer({
    url,
    service,
    ratio: settings.TOLLGATE_TRACES_PERCENT / 100,
    slowMs: settings.TOLLGATE_TRACES_SLOW_MS,
  });
}
