import { line, panel, quantiles, rate } from '../queries.mjs';

const OF_MODEL = '{model=~"$model"}';
const OF_BACKEND = '{model=~"$model",backend=~"$backend"}';

export const inference = {
  uid: 'tollgate-inference',
  title: 'Tollgate: inference',
  description: 'Speed and failures of models and of their backends.',
  variables: ['model', 'backend'],
  rows: {
    Models: [
      panel('Time to the first token', 's', quantiles('tollgate_time_to_first_token_seconds', OF_MODEL, 'model')),
      panel(
        'Streams with a late first token',
        'percentunit',
        line('tollgate:first_tokens_late:ratio_rate5m', 'above 2 s'),
      ),
      panel(
        'Output tokens',
        'tps',
        line(rate(`tollgate_tokens_total{model=~"$model",kind="completion"}`, 'model'), '{{model}}'),
      ),
      panel(
        'Prompt tokens',
        'tps',
        line(
          rate(`tollgate_tokens_total{model=~"$model",kind=~"prompt|cached"}`, 'model', 'kind'),
          '{{model}} {{kind}}',
        ),
      ),
      panel('Duration of requests', 's', quantiles('tollgate_request_duration_seconds', OF_MODEL, 'model')),
      panel(
        'Requests that wait for a place',
        'short',
        line(`sum by (model) (tollgate_backend_queue_length${OF_MODEL})`, '{{model}}'),
      ),
    ],
    Backends: [
      panel('Time to the first byte', 's', quantiles('tollgate_backend_first_byte_seconds', OF_BACKEND, 'backend')),
      panel('Duration of calls', 's', quantiles('tollgate_backend_call_duration_seconds', OF_BACKEND, 'backend')),
      panel(
        'Output tokens',
        'tps',
        line(
          rate(
            `tollgate_backend_tokens_total{model=~"$model",backend=~"$backend",kind="completion"}`,
            'model',
            'backend',
          ),
          '{{model}} {{backend}}',
        ),
      ),
      panel(
        'Calls by result',
        'reqps',
        line(rate(`tollgate_backend_calls_total${OF_BACKEND}`, 'backend', 'result'), '{{backend}} {{result}}'),
      ),
      panel(
        'Calls in progress',
        'short',
        line('sum by (backend) (tollgate_backend_calls_in_flight{backend=~"$backend"})', '{{backend}}'),
      ),
      panel(
        'Attempts at another backend or model',
        'cps',
        line(rate(`tollgate_backend_retries_total${OF_MODEL}`, 'model', 'result'), '{{model}} {{result}}'),
        line(rate(`tollgate_model_fallbacks_total${OF_MODEL}`, 'model', 'fallback'), '{{model}} by {{fallback}}'),
        line(
          rate(`tollgate_model_fallbacks_left_out_total${OF_MODEL}`, 'model', 'why'),
          '{{model}}: fallback left out, {{why}}',
        ),
      ),
      panel(
        'Open circuit breakers',
        'short',
        line('sum by (backend) (tollgate_backend_open_breakers{backend=~"$backend"})', '{{backend}}'),
      ),
      panel(
        'Silent: models whose clients left before an answer began',
        'short',
        line('sum by (backend) (tollgate_backend_silent_models{backend=~"$backend"})', '{{backend}}'),
      ),
      panel('Healthy', 'bool', line('min by (backend) (tollgate_backend_healthy{backend=~"$backend"})', '{{backend}}')),
      panel('Drained', 'bool', line('max by (backend) (tollgate_backend_drained{backend=~"$backend"})', '{{backend}}')),
    ],
    'What backends report': [
      panel(
        'Token counts that were not believed',
        'cps',
        line(rate(`tollgate_usage_disbelieved_total${OF_BACKEND}`, 'backend', 'what'), '{{backend}} {{what}}'),
      ),
      panel(
        'Answers beyond their limit',
        'cps',
        line(rate(`tollgate_overlong_answers_total${OF_BACKEND}`, 'backend'), '{{backend}}'),
      ),
      panel(
        'Tokens that the books do not explain',
        'percentunit',
        line('max by (backend, kind) (tollgate_backend_drift_ratio{backend=~"$backend"})', '{{backend}} {{kind}}'),
      ),
    ],
  },
};
