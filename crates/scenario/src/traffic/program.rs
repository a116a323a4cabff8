//! Programs that a live run starts: `type = "program"`.

use std::sync::Arc;

use super::block::{Context, Source, TrafficProperties, TrafficType};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::plan::{Program, Traffic};
use crate::value::{Table, insert, list};
use sojourn_net::Rng;

const ARGUMENTS: Form = Form::List(1, &Form::Def("text"));

const KEYS: &[Key] = &[
    Key::required(
        "command",
        ARGUMENTS,
        "Program and its arguments, run on the client's host; $SOJOURN_SERVER is the server's address.",
    ),
    Key::optional(
        "server",
        ARGUMENTS,
        "Program and its arguments, run on the server's host; started before command and stopped at the end.",
    ),
];

pub(super) const TYPE: TrafficType = TrafficType {
    name: "program",
    keys: &[KEYS],
    properties: TrafficProperties::UNKNOWN,
    read: |fields, context| Ok(Arc::new(Command::read(fields, context)?)),
};

/// Settings of a block with a program.
#[derive(Clone, Debug)]
struct Command(Arc<Program>);

impl Command {
    fn read(fields: &Fields<'_>, context: &Context<'_>) -> Result<Self, ScenarioError> {
        if let Some(place) = fields.get("count")
            && context.count != 1
        {
            let given = place.node.shown();
            return Err(place.fail(format!(
                "too many programs: {given}; expected 1, since a scenario has at most one program"
            )));
        }
        let command = fields.need("command", "[\"ping\", \"$SOJOURN_SERVER\"]")?;
        let program = Program {
            command: arguments(&command)?,
            server: fields.option("server", arguments)?,
        };
        match program.check() {
            None => Ok(Self(Arc::new(program))),
            Some((key, rule)) => Err(fields.get(key).unwrap_or(command).fail(rule)),
        }
    }
}

/// The strings of a list.
fn arguments(place: &Place<'_>) -> Result<Vec<String>, ScenarioError> {
    let strings = place.list()?;
    let strings = strings.iter().map(|place| place.text().map(str::to_owned));
    strings.collect()
}

impl Source for Command {
    fn write(&self, fields: &mut Table) {
        let written = |strings: &Vec<String>| list(strings, |text| text.as_str().into());
        insert(fields, "command", Some(written(&self.0.command)));
        insert(fields, "server", self.0.server.as_ref().map(written));
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::Program(self.0.clone())
    }
}
