//! Aborts uploads: the incomplete ones of this job, and those that a killed job left behind.

use super::super::HttpEngine;
use super::super::ledger::{self, Entry};
use iolite_http::multipart;
use iolite_http::{Answer, Method, Object, Refusal};
use iolite_options::engines::Addressing;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time limit for aborting uploads.
const PATIENCE: Duration = Duration::from_secs(10);
/// By how many seconds the server's clock may differ from this machine's clock: if they differ by more, the server
/// refuses requests.
const CLOCKS_DIFFER: u64 = 15 * 60;

impl HttpEngine {
    /// Aborts the uploads of killed jobs whose ledgers are in the auxiliary directory.
    pub(in crate::http) fn abort_left(&mut self) {
        if std::mem::replace(&mut self.uploads().has_looked, true) {
            return;
        }
        let server = self.server();
        let end = Instant::now() + PATIENCE;
        for left in ledger::left(&self.uploads().ledger) {
            let path = left.path.display().to_string();
            let Some(entries) = left.entries.clone() else {
                self.uploads().news.push(format!(
                    "http: {path} says which uploads in parts a killed job had left, and cannot be read: abort them by other \
                     means and remove it"
                ));
                continue;
            };
            let (mine, others): (Vec<Entry>, Vec<Entry>) =
                entries.into_iter().partition(|entry| entry.server == server);
            let mut outcome = Ok(0);
            for entry in &mine {
                let aborted = self.abort(entry, &mine, Some(end));
                outcome = outcome.and_then(|count| aborted.map(|more| count + more));
            }
            match outcome {
                Ok(count) => {
                    if !mine.is_empty() || others.is_empty() {
                        // If this fails, the next job looks for uploads that no longer exist, which is harmless.
                        let _ = left.keep(&others);
                    }
                    if count > 0 {
                        let what = if count == 1 { "1 upload" } else { &*format!("{count} uploads") };
                        self.uploads().news.push(format!(
                            "http: aborted {what} in parts that a killed job had left ({path})"
                        ));
                    }
                }
                Err(words) => self.uploads().news.push(format!(
                    "http: uploads in parts that a killed job had left may still be there ({path}): {words}"
                )),
            }
        }
    }

    /// Aborts an upload, and returns how many were aborted. If its id is not known, aborts all uploads that it may
    /// be. `all` are the entries of the same ledger.
    fn abort(&mut self, entry: &Entry, all: &[Entry], end: Option<Instant>) -> Result<usize, String> {
        let mut count = 0;
        let mut found = Ok(());
        let mut ids: Vec<String> = entry.id.iter().cloned().collect();
        if entry.unknown() > 0 {
            let of_it = all.iter().filter(|other| other.name == entry.name);
            let most = of_it.map(Entry::unknown).sum::<usize>();
            match self.pending(entry, end) {
                Ok(pending) if pending.len() > most => {
                    found = Err(format!(
                        "there are {} uploads of {} that were begun at that time, and nobody knows which of them are \
                         somebody else's; none of these is aborted",
                        pending.len(),
                        entry.name
                    ));
                }
                Ok(pending) => ids.extend(pending),
                Err(words) => found = Err(words),
            }
        }
        for id in &ids {
            let query = multipart::upload_query(id);
            let answer = self.ask_until(end, Method::Delete, &entry.name, &query)?;
            if !answer.is_success() && answer.status != 404 {
                return Err(format!("DELETE {}?uploadId=…: {}", entry.name, Refusal::of(&answer)));
            }
            count += usize::from(answer.is_success());
        }
        found.map(|()| count)
    }

    /// The uploads of the object that were begun in the time of this entry and that are in no ledger here.
    fn pending(&mut self, entry: &Entry, end: Option<Instant>) -> Result<Vec<String>, String> {
        let name = entry.name.trim_start_matches('/');
        let (bucket, key) = match self.options.http_s3_addressing {
            Addressing::Virtual => ("/".to_owned(), name),
            Addressing::Path => match name.split_once('/') {
                Some((bucket, key)) => (format!("/{bucket}"), key),
                None => return Ok(Vec::new()),
            },
        };
        let answer = self.ask_until(end, Method::Get, &bucket, &multipart::pending_query(key))?;
        if !answer.is_success() {
            // If the bucket does not exist, there is no upload in it.
            return match answer.status {
                404 => Ok(Vec::new()),
                _ => Err(format!("GET {bucket}?uploads: {}", Refusal::of(&answer))),
            };
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs());
        let then =
            entry.since.saturating_sub(CLOCKS_DIFFER)..=entry.until.min(now).saturating_add(CLOCKS_DIFFER);
        let known = ledger::known_ids(&self.uploads().ledger);
        let all =
            multipart::pending(&answer).map_err(|why| format!("GET {bucket}?uploads: {why}"))?.into_iter();
        // If the server does not report when an upload was begun, it may belong to another client, and is left alone.
        let own = all.filter(|one| {
            let is_then = one.begun.is_some_and(|begun| then.contains(&begun));
            one.key == key && is_then && !known.contains(&one.id)
        });
        Ok(own.map(|one| one.id).collect())
    }

    fn ask_until(
        &mut self,
        end: Option<Instant>,
        method: Method,
        name: &str,
        query: &str,
    ) -> Result<Answer, String> {
        let head = self.client.head(method, &Object { name, part: None, query, source: "" }, &[]);
        let answer = self.client.call_until(end, head, &[], false);
        answer.map_err(|failure| format!("{} {name}: {}", method.word(), failure.words))
    }

    /// Aborts the incomplete uploads of this job.
    pub(in crate::http) fn end_uploads(&mut self) {
        let Some(uploads) = self.uploads.as_deref_mut() else { return };
        let parts: BTreeMap<u64, String> = uploads
            .all
            .values()
            .map(|upload| (upload.number, format!("{} of {} parts", upload.there, upload.parts.len())))
            .collect();
        uploads.all.clear();
        uploads.of_file.clear();
        uploads.queue.clear();
        let entries = uploads.ledger.entries();
        let end = Instant::now() + PATIENCE;
        let all: Vec<Entry> = entries.iter().map(|(_, entry)| entry.clone()).collect();
        for (number, entry) in entries {
            let outcome = self.abort(&entry, &all, Some(end));
            let has = parts.get(&number).map(|parts| format!(", of which there were {parts}"));
            let uploads = self.uploads();
            match outcome {
                Ok(count) => {
                    uploads.ledger.over(number);
                    if count > 0 {
                        uploads.news.push(format!(
                            "http: aborted the upload of {}{}: the job ended before it was whole",
                            entry.name,
                            has.unwrap_or_default()
                        ));
                    }
                }
                Err(words) => {
                    let path = uploads.ledger.path().unwrap_or_else(|| "nowhere".as_ref()).display();
                    let text = format!(
                        "http: the upload of {} could not be aborted; the next job that writes in parts and finds {path} \
                         will: {words}",
                        entry.name
                    );
                    uploads.news.push(text);
                }
            }
        }
        self.uploads().ledger.close();
    }
}
