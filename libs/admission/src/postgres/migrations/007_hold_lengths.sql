-- formerly sha256 2371516afecb3b424bb5b057e54c0b3446a747e0d10c65f992e52ba31b3d789f
-- formerly sha256 7c7cdcab070e193d987f448515e2046fc81ae4e983e1bcced49b3f906394f706
-- How long holds last. It determines how long a request should wait when running requests keep it out.

-- Unknown for holds that exist when this runs. They count as ended at once.
ALTER TABLE hold ADD COLUMN admitted_ms bigint;
-- A mean over the holds that ended, weighted towards the newer ones; 0: none ended yet.
ALTER TABLE tenant ADD COLUMN hold_mean_ms bigint NOT NULL DEFAULT 0;
