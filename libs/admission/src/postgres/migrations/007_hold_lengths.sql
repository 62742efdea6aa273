-- formerly sha256 7c7cdcab070e193d987f448515e2046fc81ae4e983e1bcced49b3f906394f706
-- How long holds last: from that follows how long a request should wait that running requests keep out.

-- Not known of the holds that are there when this runs: they count as ended at once.
ALTER TABLE hold ADD COLUMN admitted_ms bigint;
-- A mean over the holds that ended, the newer ones weighing more; 0: none ended yet.
ALTER TABLE tenant ADD COLUMN hold_mean_ms bigint NOT NULL DEFAULT 0;
