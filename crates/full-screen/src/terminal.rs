//! The terminal: taken, drawn on, given back.

use crossterm::style::{Attribute, Color as Ansi, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    self, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, execute, queue};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use std::io::{self, Write};

/// Shows what was on the terminal before.
///
/// # Errors
/// The terminal takes nothing.
pub fn leave(terminal: &mut impl Write) -> io::Result<()> {
    execute!(terminal, SetAttribute(Attribute::Reset), EnableLineWrap, cursor::Show, LeaveAlternateScreen)
}

/// The terminal of this process, without echo and without lines. It is given back when this is dropped, also in a panic.
#[derive(Debug)]
pub struct Taken<W: Write>(W);

impl<W: Write> Taken<W> {
    /// Takes it.
    ///
    /// # Errors
    /// It is none, or its other end is gone.
    pub fn new(mut terminal: W) -> io::Result<Taken<W>> {
        terminal::enable_raw_mode()?;
        let entered = execute!(terminal, EnterAlternateScreen, DisableLineWrap, cursor::Hide);
        let taken = Taken(terminal);
        entered.map(|()| taken)
    }
}

impl<W: Write> Drop for Taken<W> {
    fn drop(&mut self) {
        let _ = leave(&mut self.0);
        let _ = terminal::disable_raw_mode();
    }
}

/// Cells are drawn with the colours and attributes that `picture.rs` uses.
impl<W: Write> Backend for Taken<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut next, mut style) = (None, None);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                queue!(self.0, cursor::MoveTo(x, y))?;
            }
            next = Some((x + 1, y));
            if style != Some((cell.fg, cell.modifier)) {
                style = Some((cell.fg, cell.modifier));
                queue!(self.0, SetAttribute(Attribute::Reset))?;
                for (modifier, attribute) in [
                    (Modifier::BOLD, Attribute::Bold),
                    (Modifier::DIM, Attribute::Dim),
                    (Modifier::REVERSED, Attribute::Reverse),
                ] {
                    if cell.modifier.contains(modifier) {
                        queue!(self.0, SetAttribute(attribute))?;
                    }
                }
                let color = match cell.fg {
                    Color::Red => Some(Ansi::DarkRed),
                    Color::Green => Some(Ansi::DarkGreen),
                    Color::Yellow => Some(Ansi::DarkYellow),
                    Color::Cyan => Some(Ansi::DarkCyan),
                    _ => None,
                };
                if let Some(color) = color {
                    queue!(self.0, SetForegroundColor(color))?;
                }
            }
            queue!(self.0, Print(cell.symbol()))?;
        }
        queue!(self.0, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        queue!(self.0, cursor::Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.0, cursor::Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // It is hidden, and nothing depends on it.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        queue!(self.0, cursor::MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, part: ClearType) -> io::Result<()> {
        let part = match part {
            ClearType::All => terminal::ClearType::All,
            ClearType::AfterCursor => terminal::ClearType::FromCursorDown,
            ClearType::BeforeCursor => terminal::ClearType::FromCursorUp,
            ClearType::CurrentLine => terminal::ClearType::CurrentLine,
            ClearType::UntilNewLine => terminal::ClearType::UntilNewLine,
        };
        queue!(self.0, terminal::Clear(part))
    }

    fn size(&self) -> io::Result<Size> {
        terminal::size().map(|(width, height)| Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
