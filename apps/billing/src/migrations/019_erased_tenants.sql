-- Tenants whose people the audit log no longer names. Only erase_tenant adds them, for good.
CREATE TABLE erased_tenant (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id ~ '^ten_[0-9a-z]{26}$'),
  erased_at timestamptz(3) NOT NULL DEFAULT now()
);
