//! The process of a page.

use crate::access::{Access, Admission, Rights};
use crate::answer::Answer;
use crate::message::{HAS_ALL, ToPage};
use crate::metrics::Metrics;
use crate::request::Request;
use crate::run::Run;
use crate::security::{Certified, Names};
use crate::server::{self, Open, Site};
use crate::transport::Wire;
use iolite_os::process::{Process, outlive_parent, replace};
use iolite_remote::frame;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long open pages may take to get the final report.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to check whether they have it.
const LOOK: Duration = Duration::from_millis(50);

/// The pages of one run.
struct Own {
    run: Arc<Run>,
    access: Access,
}

impl Site for Own {
    fn admit(&self, request: &Request) -> Admission {
        self.access.admit(request)
    }

    fn answer(&self, rights: Rights, request: &Request, path: &str, to: &mut Wire) -> Option<Answer> {
        self.run.answer(&self.access, rights, request, path, to)
    }
}

/// Serves the pages of the run that started this process, until the run is over, or no reader is left.
///
/// # Errors
/// This process was not started by a run.
pub fn serve() -> io::Result<()> {
    let parent = Process::of(parent_id().try_into().unwrap_or(0));
    let mut channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    channel.peer_addr()?;
    // A place that is not served has no socket.
    let listener = |stream: &dyn AsFd| -> io::Result<Option<TcpListener>> {
        let listener = TcpListener::from(stream.as_fd().try_clone_to_owned()?);
        Ok(listener.local_addr().is_ok().then_some(listener))
    };
    let (of_page, of_metrics) = (listener(&io::stdout())?, listener(&io::stderr())?);
    if of_page.is_none() && of_metrics.is_none() {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    replace(&io::stdin(), &nothing)?;
    replace(&io::stdout(), &nothing)?;
    replace(&io::stderr(), &nothing)?;
    let Ok(ToPage::Hello(hello, setup)) = frame::read(&mut channel) else { return Ok(()) };
    let linger = hello.linger_ms.map(Duration::from_millis);
    let program = hello.program.clone();
    let run = Arc::new(Run::new(*hello, parent));
    let open = Open::default();
    let security = setup.certified.as_ref().map(Certified::config).transpose().map_err(io::Error::other)?;
    let names = setup.certified.map_or(Names::Here, |certified| Names::Certified(Box::new(certified)));
    if let Some(listener) = of_metrics {
        let it = run.clone();
        let metrics = Metrics { program, runs: None, run: Box::new(move || Some(it.clone())) };
        let (site, security) = (Arc::new(metrics), security.clone());
        // Its readers come again and again; nobody waits for them.
        thread::Builder::new()
            .spawn(move || server::serve(&listener, security.as_ref(), &site, &Open::default()))?;
    }
    if let Some(listener) = of_page {
        let site = Arc::new(Own { run: run.clone(), access: Access::new(setup.tokens, names)? });
        let open = open.clone();
        thread::Builder::new().spawn(move || server::serve(&listener, security.as_ref(), &site, &open))?;
    }
    loop {
        match frame::read(&mut channel) {
            Ok(ToPage::Event(event)) => run.take(*event),
            Ok(ToPage::End(page)) => {
                run.end(page);
                break;
            }
            // The run is gone.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    outlive_parent();
    // The run waits only a short time, and may be gone.
    let _ = channel.write_all(&[HAS_ALL]);
    drop(channel);
    let until = Instant::now() + linger.unwrap_or(PATIENCE);
    while Instant::now() < until && (linger.is_some() || run.is_awaited() || open.count() > 0) {
        thread::sleep(LOOK);
    }
    Ok(())
}
