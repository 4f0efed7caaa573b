//! Stored results: a list of them, a page for each, and comparisons. Nothing here changes anything. If jobs may be
//! started, the desk (`submitted_jobs.rs`) adds its pages.

mod comparison;

use crate::access::{Access, Admission, Rights, Token};
use crate::answer::Answer;
use crate::form::{encoded, fields};
use crate::metrics::{Metrics, MetricsPlace};
use crate::request::Request;
use crate::security::{Certified, Names};
use crate::server::{self, Open, Site};
use crate::submitted_jobs::{self, Desk};
use crate::transport::Wire;
use iolite_page::live::STYLE;
use iolite_page::text::{bandwidth, count, escaped, short};
use rustls::ServerConfig;
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// The content policy: pages may load our style sheet, and send forms to this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The maximum length of a list, and of a side of a comparison.
const MOST_LISTED: usize = 500;
const MOST_COMPARED: usize = 200;

/// A result in a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its unique name.
    pub key: String,
    /// Its label; empty = none.
    pub label: String,
    /// The date, as text.
    pub when: String,
    /// How it ended; empty = not known.
    pub status: String,
    /// The machine; empty = not known.
    pub host: String,
    /// The jobs.
    pub jobs: String,
    /// I/Os per second; `None` = not known.
    pub iops: Option<f64>,
    /// Bytes per second; `None` = not known.
    pub bandwidth: Option<f64>,
}

/// A source of results.
pub trait Library: Send + Sync + 'static {
    /// The name of the library.
    fn name(&self) -> String;

    /// All results, the newest first.
    ///
    /// # Errors
    /// Why they cannot be listed.
    fn list(&self) -> Result<Vec<Entry>, String>;

    /// The report with this key, which is in the list.
    ///
    /// # Errors
    /// Why there is no report.
    fn report(&self, key: &str) -> Result<Value, String>;
}

/// A server of a library's pages.
#[derive(Debug)]
pub struct Resident<L> {
    listener: TcpListener,
    security: Option<Arc<ServerConfig>>,
    addresses: Vec<(Rights, String)>,
    shelf: Arc<Shelf<L>>,
}

#[derive(Debug)]
struct Shelf<L> {
    library: L,
    desk: Option<Arc<Desk>>,
    access: Access,
    /// Reports may be large: one request at a time reads them.
    reading: Mutex<()>,
}

impl<L: Library> Resident<L> {
    /// Listens at an address with this encryption. `desk`: for writing and starting jobs.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn open(
        address: SocketAddr,
        certified: Option<Certified>,
        library: L,
        desk: Option<Desk>,
    ) -> io::Result<Resident<L>> {
        let listener = TcpListener::bind(address)?;
        let rights: &[Rights] = match desk {
            Some(_) => &[Rights::Look, Rights::End, Rights::Start],
            None => &[Rights::Look],
        };
        let tokens = Token::of(rights)?;
        let security = certified.as_ref().map(Certified::config).transpose().map_err(io::Error::other)?;
        let names = certified.map_or(Names::Here, |certified| Names::Certified(Box::new(certified)));
        let (scheme, at) = (names.scheme(), listener.local_addr()?);
        let address_of = |token: &Token| (token.rights, format!("{scheme}{at}/?token={}", token.secret));
        let addresses = tokens.iter().map(address_of).collect();
        let access = Access::new(tokens, names)?;
        let shelf = Shelf { library, desk: desk.map(Arc::new), access, reading: Mutex::new(()) };
        Ok(Resident { listener, security, addresses, shelf: Arc::new(shelf) })
    }

    /// Serves the metrics of the jobs that are started there.
    ///
    /// # Errors
    /// No jobs are started there, or there can be no thread for it.
    pub fn serve_metrics(&self, place: MetricsPlace, program: &str) -> io::Result<()> {
        let desk = self.shelf.desk.clone().ok_or(io::ErrorKind::Unsupported)?;
        let runs = Some(desk.runs());
        place.serve(Metrics { program: program.to_owned(), runs, run: Box::new(move || desk.run()) })
    }

    /// The addresses of the pages, and the purpose of each. They contain secrets.
    pub fn addresses(&self) -> &[(Rights, String)] {
        &self.addresses
    }

    /// Serves the pages until this process is ended.
    pub fn serve(self) {
        server::serve(&self.listener, self.security.as_ref(), &self.shelf, &Open::default());
    }
}

impl<L: Library> Site for Shelf<L> {
    const MOST_BODY: usize = submitted_jobs::MOST_BODY;

    fn admit(&self, request: &Request) -> Admission {
        self.access.admit(request)
    }

    fn answer(&self, rights: Rights, request: &Request, path: &str, to: &mut Wire) -> Option<Answer> {
        if let Some(desk) = &self.desk {
            let (answer, is_its_own) = desk.answer(&self.access, rights, request, path, to);
            if is_its_own {
                return answer;
            }
        }
        Some(self.page(rights, request, path))
    }
}

impl<L: Library> Shelf<L> {
    fn page(&self, rights: Rights, request: &Request, path: &str) -> Answer {
        let fields = fields(&request.query);
        let all = |name: &str| -> Vec<String> {
            fields.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
        };
        let made = match (request.method.as_str(), path) {
            ("GET", "") => self.list(rights, all("find").first().map_or("", String::as_str)),
            ("GET", "run") => self.run(all("key").first().map_or("", String::as_str)),
            ("GET", "compare") => self.compare([
                Chosen { role: "base", keys: all("base"), label: all("base-label").pop() },
                Chosen { role: "new", keys: all("new"), label: all("new-label").pop() },
            ]),
            ("GET", "style.css") => return Answer::file("text/css; charset=utf-8", STYLE),
            ("GET", _) => return Answer::text(404, "There is nothing here."),
            _ => return Answer::text(405, "This cannot be asked for here."),
        };
        made.unwrap_or_else(|why| {
            let body = format!(
                "<p class=\"notice error\" role=\"alert\">{}</p>\n<p><a href=\"./\">All results</a></p>\n",
                escaped(&why)
            );
            Answer::page(framed("That did not work", &body), POLICY)
        })
    }

    /// The links to a run and to the editor, if any.
    fn ways(&self, rights: Rights) -> String {
        let Some(desk) = &self.desk else { return String::new() };
        let write = (rights >= Rights::Start).then_some("<a href=\"edit\">Write and run a job</a>");
        let run = desk.standing().map(|goes_on| match goes_on {
            true => "<a href=\"live/\">The current run</a>",
            false => "<a href=\"live/\">The last run</a>",
        });
        let ways: Vec<&str> = write.into_iter().chain(run).collect();
        if ways.is_empty() { String::new() } else { format!("<p>{}</p>\n", ways.join(" · ")) }
    }

    fn list(&self, rights: Rights, find: &str) -> Result<Answer, String> {
        let all = self.library.list()?;
        let wanted = find.trim().to_lowercase();
        let is_wanted = |entry: &&Entry| {
            let texts = [&entry.key, &entry.label, &entry.host, &entry.jobs];
            wanted.is_empty() || texts.into_iter().any(|text| text.to_lowercase().contains(&wanted))
        };
        let found: Vec<&Entry> = all.iter().filter(is_wanted).collect();
        let mut body = self.ways(rights);
        put!(
            body,
            "<p class=\"when\">{}: {} results, {} found, the newest first</p>\n\
             <form method=\"get\" action=\"./\"><p><label>Find in names, labels, machines and jobs: \
             <input type=\"text\" name=\"find\" value=\"{}\"></label> <button type=\"submit\">Find</button></p></form>\n",
            escaped(&self.library.name()),
            all.len(),
            found.len(),
            escaped(find),
        );
        labels(&mut body, &all);
        if found.is_empty() {
            body += "<p>There is none.</p>\n";
            return Ok(Answer::page(framed("Stored results", &body), POLICY));
        }
        body += "<form method=\"get\" action=\"compare\">\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Stored results\">\
                 <table class=\"summary\"><thead><tr>";
        for (name, class) in [
            ("base", ""),
            ("new", ""),
            ("result", "name"),
            ("label", "name"),
            ("IOPS", ""),
            ("bandwidth", ""),
            ("jobs", "name"),
            ("made", "short"),
            ("status", "short"),
            ("machine", "name"),
        ] {
            put!(body, "<th scope=\"col\" class=\"{class}\">{name}</th>");
        }
        body += "</tr></thead>\n<tbody>\n";
        found.iter().take(MOST_LISTED).for_each(|entry| row(&mut body, entry));
        body += "</tbody></table></div>\n";
        if found.len() > MOST_LISTED {
            put!(
                body,
                "<p class=\"hint\">The newest {MOST_LISTED} are shown; find the others by a text.</p>\n"
            );
        }
        body += "<p><button type=\"submit\">Compare new with base</button></p>\n<p class=\"hint\">A result is one run. Verdicts need five runs \
                 a side; with fewer, there are figures only.</p>\n</form>\n";
        Ok(Answer::page(framed("Stored results", &body), POLICY))
    }

    /// Checks that keys are in the list: nothing else may be requested.
    fn check(&self, keys: &[String]) -> Result<(), String> {
        let all = self.library.list()?;
        let missing = keys.iter().find(|key| !all.iter().any(|entry| entry.key == **key));
        missing.map_or(Ok(()), |key| Err(format!("There is no result {key:?}.")))
    }

    fn run(&self, key: &str) -> Result<Answer, String> {
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(&[key.to_owned()])?;
        let report = self.library.report(key)?;
        let page = iolite_page::of_value(&report).map_err(|error| error.of(key))?;
        Ok(Answer::page(page, &(iolite_page::policy() + "; frame-ancestors 'none'")))
    }

    fn compare(&self, sides: [Chosen; 2]) -> Result<Answer, String> {
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let sides = sides.map(|mut side| {
            if let Some(label) = &side.label {
                let all = self.library.list()?;
                // The oldest first, as in `iolite compare`.
                let labelled = all.iter().rev().filter(|entry| entry.label == *label && !label.is_empty());
                side.keys = labelled.map(|entry| entry.key.clone()).collect();
                if side.keys.is_empty() {
                    return Err(format!("There is no result with the label {label:?}."));
                }
            }
            let role = side.role;
            match side.keys.len() {
                0 => {
                    return Err(format!("Choose {role}: one result, or five and more for verdicts."));
                }
                1..=MOST_COMPARED => self.check(&side.keys)?,
                _ => {
                    return Err(format!(
                        "At most {MOST_COMPARED} results are compared with as many here; iolite compare has no such limit."
                    ));
                }
            }
            Ok(side)
        });
        let [base, new] = sides;
        let page = comparison::page(&self.library, &[base?, new?])?;
        Ok(Answer::page(page, &(iolite_page::comparison::policy() + "; frame-ancestors 'none'")))
    }
}

/// One side of a comparison, as it was chosen.
struct Chosen {
    role: &'static str,
    keys: Vec<String>,
    /// All results with this label.
    label: Option<String>,
}

impl Chosen {
    /// The name of the side, as in `iolite compare`.
    fn name(&self) -> String {
        self.label.as_ref().map_or_else(|| self.role.to_owned(), |label| format!("label:{label}"))
    }
}

/// The form that compares the results of two labels, if there are two. At first it compares the label that was used last
/// with the one before.
fn labels(body: &mut String, all: &[Entry]) {
    let mut labels: Vec<(&str, usize)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in all.iter().filter(|entry| !entry.label.is_empty()) {
        let place = *places.entry(&entry.label).or_insert_with(|| {
            labels.push((&entry.label, 0));
            labels.len() - 1
        });
        labels[place].1 += 1;
    }
    labels.truncate(MOST_LISTED);
    if labels.len() < 2 {
        return;
    }
    *body += "<form method=\"get\" action=\"compare\"><p>Compare all results";
    for (name, words, chosen) in [("base-label", "labelled", 1), ("new-label", "with those labelled", 0)] {
        put!(body, " <label>{words} <select name=\"{name}\">");
        for (position, (label, count)) in labels.iter().enumerate() {
            put!(
                body,
                "<option value=\"{}\"{}>{} ({count})</option>",
                escaped(label),
                if position == chosen { " selected" } else { "" },
                short(label),
            );
        }
        *body += "</select></label>";
    }
    *body += " <button type=\"submit\">Compare labels</button></p></form>\n";
}

fn row(body: &mut String, entry: &Entry) {
    let key = escaped(&entry.key);
    put!(body, "<tr>");
    for side in ["base", "new"] {
        put!(
            body,
            "<td><input type=\"checkbox\" name=\"{side}\" value=\"{key}\" aria-label=\"{side}: {key}\"></td>"
        );
    }
    let shown = |value: Option<f64>, format: fn(f64) -> String| value.map_or("–".to_owned(), format);
    put!(
        body,
        "<th class=\"name\" scope=\"row\"><a href=\"run?key={}\">{}</a></th><td class=\"name\">{}</td><td>{}</td><td>{}</td>\
         <td class=\"name\">{}</td><td class=\"short\">{}</td><td class=\"short\">{}</td><td class=\"name\">{}</td></tr>\n",
        encoded(&entry.key),
        short(&entry.key),
        short(&entry.label),
        shown(entry.iops, count),
        shown(entry.bandwidth, bandwidth),
        short(&entry.jobs),
        escaped(&entry.when),
        if entry.status.is_empty() { "–" } else { &entry.status },
        short(&entry.host),
    );
}

fn framed(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <link rel=\"stylesheet\" href=\"style.css\">\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )
}
