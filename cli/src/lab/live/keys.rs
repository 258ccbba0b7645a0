//! Which key does what.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::Action;

/// What a key does beside the model's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Act(Action),
    Pause,
    Step,
    Faster,
    Slower,
    End,
    Interrupt,
    Other,
}

/// The meaning of a key that is pressed.
pub fn read(key: KeyEvent) -> Key {
    if key.kind == KeyEventKind::Release {
        return Key::Other;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Up | KeyCode::Char('k') => Key::Act(Action::Up(1)),
        KeyCode::Down | KeyCode::Char('j') => Key::Act(Action::Down(1)),
        KeyCode::PageUp => Key::Act(Action::Up(10)),
        KeyCode::PageDown => Key::Act(Action::Down(10)),
        KeyCode::Char('f') => Key::Act(Action::Fail),
        KeyCode::Char('s') => Key::Act(Action::Slow),
        KeyCode::Char('l') => Key::Act(Action::Lose),
        KeyCode::Char('h') => Key::Act(Action::Heal),
        KeyCode::Char('b') => Key::Act(Action::Balancer { forward: true }),
        KeyCode::Char('B') => Key::Act(Action::Balancer { forward: false }),
        KeyCode::Char(' ') => Key::Pause,
        KeyCode::Char('.') => Key::Step,
        KeyCode::Char('+' | '=') => Key::Faster,
        KeyCode::Char('-') => Key::Slower,
        KeyCode::Char('q') | KeyCode::Esc => Key::End,
        _ => Key::Other,
    }
}
