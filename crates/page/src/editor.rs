//! The page for writing and starting a job. The server checks the job as the command line would; the page's script
//! (`assets/edit.js`) shows the mistakes at their places.

use crate::text::escaped;
use std::path::PathBuf;

/// The content policy: the page may only use our style and script, and send requests to its server.
pub const POLICY: &str = crate::live::POLICY;

/// Its style, `edit.css` next to it.
pub const STYLE: &str = concat!(
    include_str!("../assets/style.css"),
    include_str!("../assets/live.css"),
    include_str!("../assets/edit.css")
);

/// Its script, `edit.js` next to it.
pub const SCRIPT: &str = concat!("\"use strict\";\n", include_str!("../assets/edit.js"));

/// The initial text of the editor: a harmless job that makes its own file.
const EXAMPLE: &str = "[job]\nfilename=iolite-trial\nsize=64m\nrw=randread\nbs=4k\ntime_based\nruntime=10s\n";

/// The page for a reader whose requests carry this proof. `only`: the files that jobs may use.
pub fn page(only: &[PathBuf], proof: &str) -> String {
    let places: Vec<String> =
        only.iter().map(|path| format!("<code>{}</code>", escaped(&path.display().to_string()))).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>Write and run a job</title>\n\
         <link rel=\"stylesheet\" href=\"edit.css\">\n<script defer src=\"edit.js\"></script>\n</head>\n<body data-start=\"{proof}\">\n\
         <main>\n<p><a href=\"./\">Stored results</a></p>\n<h1>Write and run a job</h1>\n\
         <p class=\"hint\">Jobs use nothing but {places}; names without a directory are in the first of these. They run no programs.</p>\n\
         <noscript><p class=\"notice\">This page looks at what is written, and needs scripts for that.</p></noscript>\n\
         <div id=\"editor\"><pre id=\"marks\" aria-hidden=\"true\"></pre>\
         <textarea id=\"job\" wrap=\"off\" spellcheck=\"false\" autocomplete=\"off\" autocapitalize=\"off\" aria-label=\"Job file\" \
         aria-autocomplete=\"list\" aria-controls=\"offers\" aria-describedby=\"help verdict\">{EXAMPLE}</textarea>\
         <ul id=\"offers\" role=\"listbox\" aria-label=\"Completions\" hidden></ul></div>\n\
         <p id=\"help\" class=\"hint\"></p>\n\
         <p id=\"verdict\" role=\"status\"></p>\n<ol id=\"mistakes\"></ol>\n\
         <p><button type=\"button\" id=\"start\">Start</button><span id=\"going\"></span></p>\n\
         <section id=\"confirm\" class=\"notice error\" aria-labelledby=\"destroys\" hidden></section>\n\
         </main>\n</body>\n</html>\n",
        places = places.join(", "),
        proof = escaped(proof),
    )
}

/// The page of a run without a report.
pub fn failed(why: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<link rel=\"icon\" href=\"data:,\">\n<title>No report</title>\n\
         </head>\n<body><p>{}</p></body>\n</html>\n",
        escaped(why)
    )
}
