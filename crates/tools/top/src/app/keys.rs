//! Keys, as hands know them from top and htop.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, One};
use crate::list::Move;
use crate::view::View;

/// What the terminal must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// End the program.
    Quit,
    /// Stop until the shell continues the program.
    Suspend,
    /// Draw everything again: another program has written to the terminal.
    Redraw,
}

/// Characters that a filter has at most.
const FILTER_MAX: usize = 64;

/// Keys that the help lists, and the last line of the screen the first of them.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("1 to 5, Tab", "select a view"),
    ("Up Down PgUp PgDn", "move the selection; j and k too"),
    ("Home End", "the first row, the last row; g and G too"),
    ("Enter", "open the selected subscriber"),
    ("Esc", "close what is open, remove the filter"),
    (
        "/",
        "filter by name as you type; state=up and tunnel=17 work too",
    ),
    (
        "< > s",
        "sort by the column to the left, to the right, the next one",
    ),
    ("r", "reverse the order"),
    ("space", "pause and continue"),
    ("+ -", "read less often, more often"),
    ("Ctrl-L", "draw the screen again"),
    ("Ctrl-Z", "stop; fg continues"),
    ("h ?", "this list"),
    ("q Ctrl-C", "quit"),
];

impl App {
    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Effect::Quit),
                KeyCode::Char('z') => Some(Effect::Suspend),
                KeyCode::Char('l') => Some(Effect::Redraw),
                KeyCode::Char('u') if self.is_typing => {
                    self.edit(|text| text.clear());
                    None
                }
                _ => None,
            };
        }
        if self.is_typing {
            self.typed(key.code);
            return None;
        }
        if self.is_help {
            self.is_help = false;
            return matches!(key.code, KeyCode::Char('q')).then_some(Effect::Quit);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::F(10) => return Some(Effect::Quit),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.is_help = true,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                self.refresh();
            }
            KeyCode::Char('+' | '=') => self.step_interval(true),
            KeyCode::Char('-') => self.step_interval(false),
            KeyCode::Char(digit @ '1'..='5') => {
                self.open(View::ALL[digit as usize - '1' as usize]);
            }
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(View::ALL.len() - 1),
            other => self.in_view(other),
        }
        None
    }

    /// A key whose effect depends on the view.
    fn in_view(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('/') | KeyCode::F(3 | 4) => {
                self.is_typing = self.one.is_none() && self.filter().is_some();
            }
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            KeyCode::Enter | KeyCode::Right => self.enter(),
            KeyCode::Char('s' | '>' | '.') => self.sort(true),
            KeyCode::Char('<' | ',') => self.sort(false),
            KeyCode::Char('r' | 'R') => match self.view {
                View::Subscribers => {
                    self.subscribers.reverse();
                    // Of a long list, the daemon sends the other end.
                    self.refresh();
                }
                View::Peers => self.peers.reverse(),
                _ => {}
            },
            KeyCode::Up | KeyCode::Char('k') => self.go(Move::Up),
            KeyCode::Down | KeyCode::Char('j') => self.go(Move::Down),
            KeyCode::PageUp => self.go(Move::PageUp),
            KeyCode::PageDown => self.go(Move::PageDown),
            KeyCode::Home | KeyCode::Char('g') => self.go(Move::Home),
            KeyCode::End | KeyCode::Char('G') => self.go(Move::End),
            _ => {}
        }
    }

    fn open(&mut self, view: View) {
        if self.view != view || self.one.is_some() {
            self.view = view;
            self.one = None;
            self.refusal = None;
            self.link = super::Link::Waiting;
            self.refresh();
        }
    }

    fn turn(&mut self, by: usize) {
        let at = View::ALL.iter().position(|view| *view == self.view);
        self.open(View::ALL[(at.unwrap_or(0) + by) % View::ALL.len()]);
    }

    fn go(&mut self, to: Move) {
        match (self.view, &mut self.one) {
            (View::Subscribers, Some(one)) => one.scroll(to),
            (View::Subscribers, None) => self.subscribers.go(to),
            (View::Peers, _) => self.peers.go(to),
            (View::Queues, _) => self.queues.go(to),
            (View::Overview | View::Loop, _) => {}
        }
    }

    fn enter(&mut self) {
        if self.view == View::Subscribers
            && self.one.is_none()
            && let Some(row) = self.subscribers.selected()
        {
            self.one = Some(One::new(row));
            self.refresh();
        }
    }

    fn back(&mut self) {
        if self.one.take().is_some() {
            self.refresh();
        } else if self.filter().is_some_and(|text| !text.is_empty()) {
            self.edit(|text| text.clear());
        }
    }

    fn sort(&mut self, is_next: bool) {
        match self.view {
            View::Subscribers if self.one.is_none() => {
                self.subscribers.sort(is_next);
                // The daemon knows the worst of all its subscribers, so the list may be another one.
                self.refresh();
            }
            View::Peers => self.peers.sort(is_next),
            _ => {}
        }
    }

    /// The filter of the view, if it has one.
    pub(crate) fn filter(&self) -> Option<&str> {
        match self.view {
            View::Subscribers => Some(self.subscribers.filter()),
            View::Peers => Some(self.peers.filter()),
            _ => None,
        }
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.edit(|text| text.clear());
            }
            KeyCode::Backspace => self.edit(|text| {
                text.pop();
            }),
            KeyCode::Char(char) => self.edit(|text| {
                if text.chars().count() < FILTER_MAX {
                    text.push(char);
                }
            }),
            KeyCode::Up => self.go(Move::Up),
            KeyCode::Down => self.go(Move::Down),
            _ => {}
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut String)) {
        match self.view {
            View::Subscribers => {
                self.subscribers.edit(change);
                self.refresh();
            }
            View::Peers => self.peers.edit(change),
            _ => {}
        }
    }
}
