import { REMEDIES } from '../../../apps/console/web/src/usage/remedies';
import { INFERENCE_ERRORS } from '../../../apps/gateway/src/inference-errors';

it('every error of the inference API has a remedy on the Overview, and nothing else has', () => {
  expect(Object.keys(REMEDIES).sort()).toEqual(Object.keys(INFERENCE_ERRORS).sort());
});
