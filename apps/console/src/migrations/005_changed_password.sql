-- When the person last changed the password. A sign-in that began before may have checked the former one.
ALTER TABLE "user" ADD COLUMN changed_at timestamptz;
