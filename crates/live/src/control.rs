//! Changes of the links that the user of a run asks for during it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use sojourn_net::Instant;

/// Time that a run has to answer: it does between two packets, unless it has not begun.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most changes of a run; all are recorded.
pub(crate) const MOST_CHANGES: usize = 10_000;

/// The settings of the links of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// When they were in force.
    pub at: Instant,
    /// The name of each link, and its keys that can change, as JSON.
    pub links: Vec<(String, String)>,
}

/// Asks a run for its settings and for changes.
#[derive(Clone, Debug)]
pub struct Control(Sender<Asked>);

/// What a run is asked for.
#[derive(Debug)]
pub struct Changes(Receiver<Asked>);

/// Changes that are to be made together.
pub(crate) struct Asked {
    /// Pairs of the name of a link and the keys of a change as JSON.
    pub(crate) changes: Vec<(String, String)>,
    /// Whether watchers are to be shown the links with their flows.
    pub(crate) watches: bool,
    /// Receives the settings afterwards.
    pub(crate) answer: Sender<Result<Settings, String>>,
}

impl Control {
    /// A pair of the one who asks and the run that answers.
    pub fn new() -> (Self, Changes) {
        let (sender, receiver) = channel();
        (Self(sender), Changes(receiver))
    }

    /// Changes links, each by its name with the keys of a change as JSON: all changes take effect at the same time, or
    /// none does. Returns the settings of all links afterwards; without changes, the present ones.
    ///
    /// # Errors
    /// The key that is at fault and what is accepted; also if the run has ended.
    pub fn change(&self, changes: Vec<(String, String)>) -> Result<Settings, String> {
        self.ask(changes, false)
    }

    /// From now on the watcher of the run is shown the links with their flows. Returns the settings.
    ///
    /// # Errors
    /// If the run has ended.
    pub fn watch(&self) -> Result<Settings, String> {
        self.ask(Vec::new(), true)
    }

    fn ask(&self, changes: Vec<(String, String)>, watches: bool) -> Result<Settings, String> {
        let (answer, answered) = channel();
        let asked = self.0.send(Asked {
            changes,
            watches,
            answer,
        });
        asked.map_err(|_| "the run has ended".to_owned())?;
        let answer = answered.recv_timeout(PATIENCE);
        answer.unwrap_or_else(|_| Err("the run has not begun or has ended".to_owned()))
    }
}

impl Changes {
    /// The next changes that nobody has answered.
    pub(crate) fn next(&self) -> Option<Asked> {
        self.0.try_recv().ok()
    }
}
