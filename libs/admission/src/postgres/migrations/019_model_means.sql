-- How long the holds of each model last (../functions/hold_lengths.sql). It determines how long a request should wait
-- when running requests keep it out.

-- { model, mean length in ms, model, mean, … } of the models whose holds ended last, the newest first.
ALTER TABLE tenant ADD COLUMN model_means text[] NOT NULL DEFAULT '{}';
