-- A subject of OpenID Connect is unique at its issuer only. "accountId" of the provider 'oidc' is the subject alone for
-- the issuer of this row, as versions without this table wrote it. For other issuers, and for subjects with a space, it
-- is the issuer, a space and the subject. The issuer has no slash at its end. Without the row, a console adds the first
-- issuer that it learns of.
CREATE TABLE first_issuer (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  issuer text NOT NULL
);
-- The stored ID tokens name the issuers of the subjects. The issuer that was used last is the one in force.
DO $$
DECLARE
  link record;
  payload text;
  named text;
BEGIN
  FOR link IN
    SELECT "id", "idToken" FROM "account" WHERE "providerId" = 'oidc' AND "idToken" IS NOT NULL
    ORDER BY "updatedAt" DESC, "id"
  LOOP
    BEGIN
      payload := translate(split_part(link."idToken", '.', 2), '-_', '+/');
      payload := convert_from(decode(rpad(payload, (length(payload) + 3) / 4 * 4, '='), 'base64'), 'UTF8');
      named := regexp_replace(payload::jsonb ->> 'iss', '/$', '');
    EXCEPTION WHEN data_exception THEN
      named := NULL;
    END;
    CONTINUE WHEN named IS NULL;
    INSERT INTO first_issuer (issuer) VALUES (named) ON CONFLICT DO NOTHING;
    UPDATE "account" SET "accountId" = named || ' ' || "accountId"
      WHERE "id" = link."id" AND ("accountId" LIKE '% %' OR named <> (SELECT issuer FROM first_issuer));
  END LOOP;
END $$;
-- Nothing reads the tokens.
UPDATE "account" SET "idToken" = NULL, "accessToken" = NULL, "refreshToken" = NULL, "accessTokenExpiresAt" = NULL,
    "refreshTokenExpiresAt" = NULL
  WHERE "providerId" = 'oidc';
