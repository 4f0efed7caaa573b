//! `iolite report`: a page of a stored result.

use super::{kept, source};
use crate::destination::Destination;
use iolite_options::commands::Asked;
use iolite_types::is_standard_stream;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The page, or nothing if it went to a file.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let [file] = &asked.operands[..] else {
        return Err(
            "needs the name of one result in JSON (- is standard input), or run:12 of the store".to_owned()
        );
    };
    if kept::is_kept(file) {
        return of_kept(asked, &file.to_string_lossy());
    }
    let path = Path::new(file);
    let name =
        if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let told = |error: std::io::Error| format!("{name}: {error}");
    let opened = source::open(program, path).map_err(told)?;
    let text = source::text(&mut BufReader::with_capacity(64 << 10, opened)).map_err(told)?;
    let page = iolite_page::of_text(&text).map_err(|error| error.of(&name))?;
    let Some(output) = asked.value('o').map(Path::new) else { return Ok(page) };
    // By whatever name (a link, standard input) the result was given, writing the page would destroy it.
    let source = if is_standard_stream(path) { Path::new("/dev/stdin") } else { path };
    if let (Ok(from), Ok(to)) = (source.metadata(), output.metadata())
        && from.is_file()
        && (from.dev(), from.ino()) == (to.dev(), to.ino())
    {
        return Err(format!("--output={}: that is the result itself; give another name", output.display()));
    }
    write(output, page.as_bytes()).map_err(|error| format!("--output={}: {error}", output.display()))?;
    Ok(String::new())
}

/// The page of a run of the store; of several with one label, of the newest.
fn of_kept(asked: &Asked, word: &str) -> Result<String, String> {
    let opened = kept::Opened::of(asked, 's')?;
    let Some(run) = opened.named(word)?.into_iter().next_back() else { return Ok(String::new()) };
    let page = iolite_page::of_text(&opened.report(run)?).map_err(|error| error.of(word))?;
    let Some(output) = asked.value('o').map(Path::new) else { return Ok(page) };
    write(output, page.as_bytes()).map_err(|error| format!("--output={}: {error}", output.display()))?;
    Ok(String::new())
}

/// What was there is replaced when the page is complete.
pub fn write(output: &Path, page: &[u8]) -> std::io::Result<()> {
    let mut destination = Destination::open(output)?;
    destination.write(page, |file, part| file.write_all(part))?;
    destination.complete()
}
