import { mayLackToken } from '../../body/token-ids';
import type { Backend, CatalogModel } from '../../catalog/catalog';
import type { AnswerSink } from '../../upstream/exchange/call';
import type { Exchange } from '../../upstream/exchange/exchange';
import type { Upstream } from '../../upstream/upstream';
import type { AdmittedRequest } from '../admitted-request';
import { KINDS } from '../wire-names';

/** Asks a backend of the request's model, and then its fallbacks. The exchange has not started yet. */
export function askBackend(upstream: Upstream, admitted: AdmittedRequest, sink: AnswerSink): Exchange {
  const { request, model, hold } = admitted;
  const call = {
    model,
    path: KINDS[request.kind].path,
    stream: request.stream,
    fallbacks: hold.fallbacks,
    body: (backend: Backend) => admitted.bodyFor(backend),
    mayBeAtFault: (asked: CatalogModel) => mayLackToken(request, asked),
    affinity: request.affinity,
    headers: admitted.backendHeaders,
    request: admitted,
  };
  const exchange = upstream.exchange(call, sink);
  admitted.asks(exchange.record);
  return exchange;
}
