-- When a person closed a quarantined charge that stays out of the books. Only the owner of the schema sets it.
ALTER TABLE rejected_charge ADD COLUMN dismissed_at timestamptz;
