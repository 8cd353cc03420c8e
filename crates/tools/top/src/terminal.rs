//! The terminal: its modes, keys, signals, and the loop that joins them with the state.
//!
//! One thread reads keys, one waits for signals, and one asks the daemon; they send to the loop, which alone draws.

use std::io::{self, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::app::{App, Effect, Link};
use crate::draw;
use crate::rows::{Report, Want};
use crate::source::Source;
use crate::view::View;

/// The longest time between two looks at whether the terminal is still there.
const LOOK: Duration = Duration::from_secs(1);

/// The exit status after a signal.
const SIGNALLED: u8 = cli::interrupt::STATUS as u8;

/// The size of a screen that is printed, where no terminal and no COLUMNS and LINES say.
const SIZE: (u16, u16) = (80, 24);

type Screen = Terminal<CrosstermBackend<io::Stdout>>;

/// Something that happened.
enum Happening {
    Terminal(Event),
    Signal(i32),
    Report(Report),
}

/// Checks that there is a terminal that can place text.
///
/// # Errors
/// There is none; the message has a remedy.
pub(crate) fn check() -> Result<()> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("top needs a terminal; \"headend top --once\" prints one screen without a terminal");
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb" | "") | Err(_) => bail!(
            "this terminal cannot place text (TERM is \"dumb\" or not set); set TERM to its type, such as xterm-256color, \
             or use \"headend top --once\""
        ),
        Ok(_) => Ok(()),
    }
}

/// Prints one screen: reads twice, so that there are rates.
///
/// # Errors
/// The daemon is gone, or standard output is closed.
pub(crate) fn once(mut app: App, source: &mut Source) -> Result<()> {
    let start = Instant::now();
    for round in 0..2 {
        if round > 0 {
            thread::sleep(app.left(start.elapsed()).unwrap_or_default());
        }
        let wants = app.due(start.elapsed()).unwrap_or_default();
        let report = source.poll(app.view, wants);
        app.take(report, start.elapsed());
        if let Link::Gone(reason) = &app.link {
            bail!("{reason}");
        }
        if let Some(reason) = &app.refusal {
            bail!("{reason}");
        }
    }
    let (width, height) = printed_size();
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw::screen(&app, &mut buffer, draw::Frame::Printed);
    let mut out = io::stdout().lock();
    out.write_all(draw::text(&buffer).trim_end().as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

fn printed_size() -> (u16, u16) {
    let variable = |name| std::env::var(name).ok()?.parse::<u16>().ok();
    let terminal = io::stdout().is_terminal().then(|| size().ok()).flatten();
    let (width, height) = terminal.unwrap_or(SIZE);
    let width = variable("COLUMNS").unwrap_or(width);
    (
        width.clamp(1, 1_000),
        variable("LINES").unwrap_or(height).clamp(1, 1_000),
    )
}

/// Runs until the user quits, a signal arrives, or the terminal is gone.
///
/// # Errors
/// The terminal cannot be set up.
pub(crate) fn run(mut app: App, source: Source) -> Result<ExitCode> {
    let (sender, happenings) = mpsc::channel();
    watch_signals(sender.clone())?;
    let requests = serve(source, sender.clone());
    restore_on_panic();
    let _guard = Guard;
    // Its destructor shows the cursor, as the guard does, and panics if the terminal is gone.
    let mut screen = ManuallyDrop::new(enter().context("cannot set up the terminal")?);
    read_keys(sender);
    // An error is that of a terminal that is gone. Nobody would read a message; the status is that of a terminal whose end
    // was noticed before anything was drawn.
    match turn(&mut app, &mut screen, &happenings, &requests) {
        Ok(code) => Ok(code),
        Err(_) => Ok(ExitCode::from(SIGNALLED)),
    }
}

/// The loop.
fn turn(
    app: &mut App,
    screen: &mut Screen,
    happenings: &Receiver<Happening>,
    requests: &Sender<(View, Vec<Want>)>,
) -> io::Result<ExitCode> {
    let start = Instant::now();
    loop {
        if let Some(wants) = app.due(start.elapsed()) {
            // The thread ends with this one.
            let _ = requests.send((app.view, wants));
        }
        screen.draw(|frame| draw::screen(app, frame.buffer_mut(), draw::Frame::Live))?;
        let left = app.left(start.elapsed()).unwrap_or(LOOK).min(LOOK);
        match happenings.recv_timeout(left) {
            Ok(Happening::Terminal(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                match app.key(key) {
                    None => {}
                    Some(Effect::Quit) => return Ok(ExitCode::SUCCESS),
                    Some(Effect::Redraw) => *screen = again()?,
                    Some(Effect::Suspend) => *screen = suspend()?,
                }
            }
            Ok(Happening::Terminal(_)) => {}
            Ok(Happening::Report(report)) => app.take(report, start.elapsed()),
            Ok(Happening::Signal(SIGTSTP)) => *screen = suspend()?,
            Ok(Happening::Signal(SIGCONT)) => *screen = again()?,
            Ok(Happening::Signal(_)) => return Ok(ExitCode::from(SIGNALLED)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(ExitCode::FAILURE),
        }
        if is_hung_up() {
            return Ok(ExitCode::from(SIGNALLED));
        }
    }
}

/// Whether the other end of the terminal is closed.
fn is_hung_up() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Sends signals to the loop.
fn watch_signals(sender: Sender<Happening>) -> Result<()> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT]).context("cannot take signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(Happening::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Sends keys and changes of size to the loop.
fn read_keys(sender: Sender<Happening>) {
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(Happening::Terminal(event)).is_err() {
                return;
            }
        }
    });
}

/// Carries out requests, so that a daemon that does not reply delays no key.
fn serve(mut source: Source, sender: Sender<Happening>) -> Sender<(View, Vec<Want>)> {
    let (requests, inbox) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((view, wants)) = inbox.recv() {
            let report = source.poll(view, wants);
            if sender.send(Happening::Report(report)).is_err() {
                return;
            }
        }
    });
    requests
}

/// Sets up the terminal: keys arrive one by one, on a screen of our own.
fn enter() -> io::Result<Screen> {
    enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(
        out,
        EnterAlternateScreen,
        Clear(ClearType::All),
        cursor::Hide
    )?;
    Terminal::new(CrosstermBackend::new(out))
}

/// Gives the terminal back as it was.
fn leave() {
    // The terminal may be gone, and then it needs nothing.
    let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Sets up the terminal again, with an empty screen.
fn again() -> io::Result<Screen> {
    disable_raw_mode()?;
    enter()
}

/// Gives the terminal back, stops, and takes the terminal again once the shell continues the program.
fn suspend() -> io::Result<Screen> {
    // In the process group of the session's leader there is no shell that could continue the program.
    let has_shell = rustix::process::getsid(None)? != rustix::process::getpgrp();
    if has_shell {
        leave();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
    }
    again()
}

/// Restores the terminal when the loop ends, however it ends.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal before the message of a panic, in whichever thread.
fn restore_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        leave();
        report(info);
    }));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// With this variable, the test is the program that panics.
    const CHILD: &str = "HEADEND_TOP_PANICS";
    const NAME: &str = "terminal::tests::a_panic_gives_the_terminal_back";

    #[test]
    fn a_panic_gives_the_terminal_back() {
        if std::env::var_os(CHILD).is_some() {
            restore_on_panic();
            let _screen = ManuallyDrop::new(enter().unwrap());
            panic!("on purpose");
        }
        let own = std::env::current_exe().unwrap();
        let line = format!(
            "stty -a; {} --exact {NAME} --nocapture; stty -a",
            own.display()
        );
        // It runs the line on a terminal of its own.
        let mut script = Command::new("script");
        script
            .args(["-q", "-c", &line, "/dev/null"])
            .env(CHILD, "1");
        let output = script.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("{part:?}: {text}"))
        };
        assert!(at("\u{1b}[?1049h") < at("\u{1b}[?25l"), "{text}");
        assert!(at("\u{1b}[?25l") < at("\u{1b}[?25h"), "{text}");
        assert!(at("\u{1b}[?1049l") < at("on purpose"), "{text}");
        // Echo, lines and signals as before.
        let modes = |text: &str| -> Vec<String> {
            let words = text
                .split_whitespace()
                .map(|word| word.trim_end_matches(';'));
            let known = ["icanon", "echo", "isig", "opost", "icrnl"];
            let is_known = |word: &&str| known.contains(&word.trim_start_matches('-'));
            words.filter(is_known).map(str::to_owned).collect()
        };
        let before = modes(&text[..at("\u{1b}[?1049h")]);
        let after = modes(&text[at("on purpose")..]);
        assert_eq!(before.len(), 5, "{text}");
        assert_eq!(after, before, "{text}");
    }
}
