//! The process that draws: events of the run and keys come in, pictures go out.

use crate::figures::Figures;
use crate::picture::{self, View};
use crate::run_side::Look;
use crate::terminal::Taken;
use crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use iolite_os::process::{Process, process_id, replace};
use iolite_stats::Event;
use iolite_web::{read_event, read_hello};
use ratatui_core::terminal::Terminal;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// How often the screen is drawn.
const PERIOD: Duration = Duration::from_millis(250);

/// Shows the run that started this process until it ends. `word`: what the terminal can show.
///
/// # Errors
/// This process was not started by a run, or the terminal is gone.
pub fn serve(word: &str) -> io::Result<()> {
    let run = Process::of(parent_id().try_into().unwrap_or(0));
    let mut from_run = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    from_run.peer_addr()?;
    // Keys come from the terminal.
    replace(&io::stdin(), &File::open("/dev/tty")?)?;
    let mut figures = Figures::of(read_hello(&mut from_run)?);
    let (sender, events) = channel();
    thread::Builder::new().spawn(move || {
        while let Some(event) = read_event(&mut from_run) {
            if sender.send(event).is_err() {
                break;
            }
        }
        drop(sender);
        // The other thread waits for keys; a new size, even the old one, wakes it up.
        iolite_os::signals::kill(process_id(), libc::SIGWINCH);
    })?;
    let mut terminal = Terminal::new(Taken::new(io::BufWriter::with_capacity(1 << 16, io::stdout()))?)?;
    let (look, mut view) = (Look::of_word(word), View::default());
    while is_going(&events, &mut figures) {
        terminal.draw(|frame| picture::draw(&figures, &mut view, look, frame.buffer_mut()))?;
        if !event::poll(PERIOD)? {
            continue;
        }
        match event::read()? {
            Input::Key(key) if is_end(key) => run.iter().for_each(|run| run.signal(libc::SIGINT)),
            Input::Key(key) if key.kind != KeyEventKind::Release => press(key.code, &mut view),
            _ => {}
        }
    }
    Ok(())
}

/// Takes all events that have come; whether more may come.
fn is_going(events: &Receiver<Event>, figures: &mut Figures) -> bool {
    loop {
        match events.try_recv() {
            Ok(event) => figures.take(event),
            Err(error) => return error == TryRecvError::Empty,
        }
    }
}

/// The terminal sends no signals while it sends each key.
fn is_end(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('q')
        || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn press(key: KeyCode, view: &mut View) {
    match key {
        KeyCode::Char('s') => view.order = view.order.next(),
        KeyCode::Up => view.above = view.above.saturating_sub(1),
        KeyCode::Down => view.above += 1,
        KeyCode::PageUp => view.above = view.above.saturating_sub(view.page),
        KeyCode::PageDown => view.above += view.page,
        KeyCode::Home => view.above = 0,
        KeyCode::End => view.above = usize::MAX,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Order;

    #[test]
    fn keys() {
        let mut view = View { page: 10, ..View::default() };
        let keys = [KeyCode::Up, KeyCode::PageDown, KeyCode::Down, KeyCode::Char('s'), KeyCode::Char('x')];
        keys.into_iter().for_each(|key| press(key, &mut view));
        assert_eq!((view.above, view.order), (11, Order::Iops));
        press(KeyCode::End, &mut view);
        assert_eq!(view.above, usize::MAX);
        let key = |code, modifiers| is_end(KeyEvent::new(code, modifiers));
        assert!(
            key(KeyCode::Char('q'), KeyModifiers::NONE) && key(KeyCode::Char('c'), KeyModifiers::CONTROL)
        );
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
    }
}
