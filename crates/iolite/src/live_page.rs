//! `--web`, `--metrics` and `--live=full`: the page, the metrics and the full screen of a running run, from the run's side.

use crate::{console, terminal};
use iolite_full_screen::FullScreen;
use iolite_options::{LiveView, Name, RunOptions, WebTls};
use iolite_page::logs::Drawings;
use iolite_remote::message::machine_name;
use iolite_report::Program;
use iolite_stats::{Event, EventKind, Report};
use iolite_web::{Certified, Hello, LivePage, Places};
pub use iolite_web::{LOST, Lost, WAITS};
use std::net::SocketAddr;
use std::time::Duration;

/// The certificate and key of pages at this address.
///
/// # Errors
/// Certificate and key cannot be used, or cannot be created.
pub fn certified(address: SocketAddr, tls: Option<&WebTls>) -> Result<Option<Certified>, String> {
    let made = tls.map(|tls| match tls {
        WebTls::New => Certified::make(address.ip(), &machine_name()),
        WebTls::Files { certificate, key } => Certified::read(certificate, key),
    });
    made.transpose()
}

/// The advice for users whose browser does not know the certificate.
pub fn told(tls: Option<&WebTls>, certified: Option<&Certified>) -> Option<String> {
    let fingerprint = certified.filter(|_| tls == Some(&WebTls::New))?.fingerprint();
    Some(format!(
        "the certificate was made for this time, so browsers warn of it; its SHA-256 fingerprint has to be {fingerprint}"
    ))
}

/// The subject of a page.
#[derive(Debug)]
pub struct About {
    /// The report before the first measurement, with the facts.
    pub outline: Report,
    /// The report block of each worker.
    pub blocks: Vec<Option<u32>>,
    /// The time between two samples.
    pub interval: Duration,
    /// The jobs stand for other machines; the first stands for all of them together.
    pub of_hosts: bool,
}

/// Those who show a run while it goes on, if requested.
#[derive(Debug, Default)]
pub struct Live {
    page: Option<LivePage>,
    screen: Option<FullScreen>,
}

impl Live {
    /// Starts to serve the page, and prints its addresses. Then takes the terminal.
    ///
    /// # Errors
    /// Why it cannot be served, or shown.
    pub fn start(name: Name, run: &RunOptions, about: About) -> Result<Live, String> {
        let program = name.own_version().to_owned();
        let About { outline, blocks, interval, of_hosts } = about;
        let interval_ns = interval.as_nanos() as u64;
        let hello = Hello { outline, blocks, interval_ns, of_hosts, program, linger_ms: run.web_linger };
        let page = Live::serve(name, run, &hello)?;
        let mut screen = None;
        if run.live == LiveView::Full {
            let shown = FullScreen::start(hello, terminal::look(run.color));
            let shown = screen.insert(shown.map_err(|why| format!("--live=full: {why}"))?);
            // The printed addresses are not in view.
            let addresses = page.iter().flat_map(|page| {
                [page.addresses().map(|[owner, _]| owner.as_str()), page.metrics()].into_iter().flatten()
            });
            for address in addresses {
                let note = EventKind::Note(format!("served at {address}"));
                shown.take(&Event::new(0, None, note)).map_err(|lost| lost.to_string())?;
            }
        }
        Ok(Live { page, screen })
    }

    fn serve(name: Name, run: &RunOptions, hello: &Hello) -> Result<Option<LivePage>, String> {
        let (page, metrics) = (run.web, run.metrics);
        let Some(address) = page.or(metrics) else { return Ok(None) };
        let certified =
            certified(address, run.web_tls.as_ref()).map_err(|why| format!("--web-tls: {why}"))?;
        let fingerprint = told(run.web_tls.as_ref(), certified.as_ref());
        let option = if page.is_some() { "--web" } else { "--metrics" };
        let page = LivePage::start(Places { page, metrics }, certified, hello.clone())
            .map_err(|why| format!("{option}: {why}"))?;
        if let Some([owner, guest]) = page.addresses() {
            console::print_error(&format!(
                "{name}: --web: the run is at {owner}\n{name}: --web: for those who may only look: {guest}\n"
            ));
        }
        if let Some(metrics) = page.metrics() {
            console::print_error(&format!("{name}: --metrics: the metrics are at {metrics}\n"));
        }
        if let Some(words) = fingerprint {
            console::print_error(&format!("{name}: --web-tls: {words}\n"));
        }
        Ok(Some(page))
    }

    /// Passes on an event.
    ///
    /// # Errors
    /// A process that shows the run has ended, which is reported once.
    pub fn take(&mut self, event: &Event) -> Result<(), Lost> {
        let shown = self.screen.as_mut().map_or(Ok(()), |screen| screen.take(event));
        self.page.as_mut().map_or(Ok(()), |page| page.take(event)).and(shown)
    }

    /// Gives the terminal back, if the run has taken it.
    pub fn leave_screen(&mut self) {
        self.screen = None;
    }

    /// The run is over, and this is its report.
    ///
    /// # Errors
    /// The page is gone.
    pub fn end(&mut self, name: Name, report: &Report, logs: &Drawings) -> Result<(), Lost> {
        // The loss of a page was reported when it happened.
        if self.page.as_ref().is_none_or(LivePage::is_lost) {
            return Ok(());
        }
        // `own_version`, even under the name `fio`: the page is not fio's.
        let program =
            Program { version: name.own_version().to_owned(), own_version: name.own_version().to_owned() };
        // The run has generated this JSON itself, and writing to memory does not fail.
        self.end_with(iolite_page::of_report(report, &program, logs).unwrap_or_default())
    }

    /// The run is over, and this is the page of its report.
    ///
    /// # Errors
    /// The page is gone.
    pub fn end_with(&mut self, text: String) -> Result<(), Lost> {
        self.page.take().map_or(Ok(()), |page| page.end(text))
    }
}
