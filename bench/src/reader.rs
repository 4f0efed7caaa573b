//! A reader of a run's page, as a browser would be one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ChildStderr;
use std::thread::{self, JoinHandle};

/// A thread that follows the page of a run until the run ends.
pub struct Reader(JoinHandle<io::Result<String>>);

impl Reader {
    /// Waits for the program to print the address of the page on standard error, then follows the page.
    pub fn of(said: ChildStderr) -> Reader {
        Reader(thread::spawn(move || {
            let mut said = BufReader::new(said);
            let (mut text, mut looking) = (String::new(), None);
            while said.read_line(&mut text)? > 0 {
                let line = text.lines().next_back().unwrap_or_default();
                if looking.is_none()
                    && let Some((_, address)) = line.split_once("only look: http://")
                {
                    let address = address.to_owned();
                    looking = Some(thread::spawn(move || look(&address)));
                }
            }
            let looked = looking.map_or_else(|| Err(strange("no address of a page")), joined);
            looked.map_err(|error| io::Error::new(error.kind(), format!("the page: {error}; {text}")))?;
            Ok(text)
        }))
    }

    /// Waits for the reader and returns the standard error of the program. Fails if the reader could not follow the page.
    pub fn end(self) -> io::Result<String> {
        joined(self.0)
    }
}

fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(strange("the reader has failed")))
}

fn strange(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Follows the events of a page to their end, and fetches the report, as a browser does.
fn look(address: &str) -> io::Result<()> {
    let (host, token) = address.split_once('/').ok_or_else(|| strange("its address is none"))?;
    let mut answer = String::new();
    ask(host, &format!("/{token}"), "")?.read_to_string(&mut answer)?;
    let between = |begin: &str, end: &str| {
        let found = answer.split_once(begin).and_then(|(_, rest)| Some(rest.split_once(end)?.0.to_owned()));
        found.ok_or_else(|| strange("it gave no cookie"))
    };
    let (cookie, path) = (between("Set-Cookie: ", ";")?, between("url=", "\"")?);
    for file in ["events", ""] {
        let answered = io::copy(&mut ask(host, &format!("{path}{file}"), &cookie)?, &mut io::sink())?;
        if answered == 0 {
            return Err(strange("it did not answer"));
        }
    }
    Ok(())
}

fn ask(host: &str, path: &str, cookie: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(host)?;
    let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n")?;
    Ok(stream)
}
