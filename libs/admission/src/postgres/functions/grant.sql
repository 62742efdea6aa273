-- What credit and budgets grant to a request.

-- The most output tokens that `p_nanos` pays for in addition to the prompt; −1 if it does not even pay for the
-- prompt. Numeric, because the femtos of a large request exceed a bigint.
CREATE OR REPLACE FUNCTION afford(p_nanos bigint, p_prompt_femtos numeric, p_output_femtos numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_nanos::numeric * 1000000 < p_prompt_femtos THEN -1
    WHEN p_output_femtos = 0 THEN 9223372036854775807
    ELSE least(div(p_nanos::numeric * 1000000 - p_prompt_femtos, p_output_femtos), 9223372036854775807)
  END::bigint
$$;

-- What a request gets that cannot have all that it wants: tokens and nanos, or the refusal and its scope. Unspent: what
-- remains of a budget in the month (null: there is none). Available: the least of credit and budgets, minus what
-- running requests hold. Key available: the same for the key's budget alone. Only such requests pay for this call.
CREATE OR REPLACE FUNCTION grant_part(
  p_want_tokens bigint, p_min_tokens bigint, p_prompt_femtos numeric, p_output_femtos numeric,
  p_bound_is_exact boolean, p_least_nanos bigint,
  p_spendable bigint, p_key_unspent bigint, p_tenant_unspent bigint, p_available bigint, p_key_available bigint,
  OUT tokens bigint, OUT nanos bigint, OUT refusal text, OUT scope text)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_target bigint;
  v_least bigint;
BEGIN
  scope := 'tenant';
  -- rule 5: a bound that is not exact
  IF NOT p_bound_is_exact THEN
    refusal := 'bound';
  -- rule 6: budget reached
  ELSIF p_least_nanos > p_key_unspent THEN
    refusal := 'budget_reached';
    scope := 'key';
  ELSIF p_least_nanos > p_tenant_unspent THEN
    refusal := 'budget_reached';
  -- rule 7: credit exhausted
  ELSIF p_least_nanos > p_spendable THEN
    refusal := 'credit_exhausted';
  -- rule 8: clamped, or held by others
  ELSE
    v_target := least(
      p_want_tokens,
      afford(least(p_spendable, p_key_unspent, p_tenant_unspent), p_prompt_femtos, p_output_femtos));
    v_least := least(p_min_tokens, v_target);
    tokens := least(v_target, afford(p_available, p_prompt_femtos, p_output_femtos));
    IF tokens < v_least THEN
      refusal := 'credit_held';
      IF afford(p_key_available, p_prompt_femtos, p_output_femtos) < v_least THEN
        scope := 'key';
      END IF;
    ELSE
      -- Rounded up in whole numbers: a quotient of numeric loses its fraction from 17 digits on.
      nanos := div(p_prompt_femtos + tokens * p_output_femtos + 999999, 1000000);
    END IF;
  END IF;
END
$$;
