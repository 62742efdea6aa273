-- The time step of the newest code that was accepted (RFC 6238). Codes of this step and of earlier ones are refused.
ALTER TABLE "twoFactor" ADD COLUMN used_step bigint;
