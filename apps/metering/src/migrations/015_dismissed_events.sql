-- Each batch looks for events that a person has dismissed: record/dismissed.ts.
CREATE INDEX rejected_event_id ON rejected_event (event_id);
