//! Events and commands of applications, and the slots of their connections.
//!
//! A connection lives in a slot behind the flows of the configuration. When it has ended and the
//! last of its packets has left the network, another may take the slot: memory is that of the
//! connections in progress, however many a run opens.

use sojourn_apps::{AppEvent, AppOutput, Command};
use sojourn_records::FlowCounters;

use super::World;
use crate::agenda::{Event, MAX_INDEX};
use crate::host::{Flow, Source};

/// How many ended connections are looked at for one whose slot is free.
const LOOKED_AT: usize = 8;

impl World<'_> {
    /// Notifies application `id` of an event and executes its commands.
    pub(super) fn notify(&mut self, id: u32, event: AppEvent) {
        self.applications.pending.push_back((id, event));
        self.notify_pending();
    }

    pub(super) fn notify_pending(&mut self) {
        while let Some((id, event)) = self.applications.pending.pop_front() {
            let Some(application) = self.flows[id as usize].application() else {
                continue;
            };
            let mut output = std::mem::take(&mut self.applications.output);
            output.flow = id;
            application.on(self.now, event, &mut output);
            for n in 0..output.commands.len() {
                self.execute(id, output.commands[n]);
            }
            output.commands.clear();
            self.applications.output = output;
            self.follow_application(id);
        }
    }

    /// Executes a command of application `id`.
    fn execute(&mut self, id: u32, command: Command) {
        if let Command::Open(number) | Command::OpenAndWrite { number, .. } = command {
            self.make_connection(id, number);
        }
        let Some(slot) = self.flows[id as usize].slot(command.connection()) else {
            return;
        };
        let Some(connection) = self.flows[slot as usize].connection_mut() else {
            return;
        };
        let Some(kind) = connection.execute(self.now, command, &mut self.outbox) else {
            return self.collect_events(slot);
        };
        let over = connection.is_over();
        connection.note_limit(self.now, || self.observed.notes.waits.of(slot));
        self.send(slot, kind);
        if over {
            self.end_connection(slot);
        } else {
            self.follow_timers(slot, kind);
        }
    }

    /// Makes the connection that an application opens. That of a bulk transfer exists.
    fn make_connection(&mut self, id: u32, number: u32) {
        let Source::App(_) = self.flows[id as usize].source else {
            return;
        };
        let Some(slot) = self.free_slot(id) else {
            let failed = AppEvent::Failed(number);
            self.applications.pending.push_back((id, failed));
            return;
        };
        let Source::App(application) = &mut self.flows[id as usize].source else {
            return;
        };
        let (connection, initial_window) = application.make_connection(number, slot, self.hosts);
        self.observed
            .notes
            .starts
            .open_slot(slot, id, initial_window);
        if let Some(capture) = &mut self.observed.notes.capture {
            capture.open(slot, &self.config.flows[id as usize].traffic);
        }
        self.flows[slot as usize].source = Source::Connection(connection);
    }

    /// A slot for a connection of application `id`; `None`: there are no more numbers.
    fn free_slot(&mut self, id: u32) -> Option<u32> {
        let Flow {
            forward,
            reverse,
            class,
            owner,
            ..
        } = self.flows[id as usize];
        let fresh = |slot| Flow::new((forward, reverse), class, owner.with_flow(slot));
        for _ in 0..self.applications.ended.len().min(LOOKED_AT) {
            let slot = self.applications.ended.pop_front()?;
            if self.observed.notes.starts.is_clear(slot) {
                self.flows[slot as usize] = fresh(slot);
                return Some(slot);
            }
            self.applications.ended.push_back(slot);
        }
        let slot = u32::try_from(self.flows.len()).ok()?;
        if slot > MAX_INDEX {
            return None;
        }
        self.flows.push(fresh(slot));
        self.observed.notes.starts.add_slot();
        self.observed.notes.waits.add_slot();
        Some(slot)
    }

    /// Removes the connection in slot `id`, or of the bulk transfer `id`, which has nothing more to
    /// send.
    pub(super) fn end_connection(&mut self, id: u32) {
        self.count_limit(id);
        let source = &mut self.flows[id as usize].source;
        let Source::Connection(connection) = source else {
            return;
        };
        let Some((app, number)) = connection.app() else {
            return self.flows[id as usize].release(self.now);
        };
        let (delivered, failed) = (connection.take_delivered(), connection.has_failed());
        let counters = connection.counters();
        *source = Source::None;
        let losses = self.observed.notes.starts.losses_of(id);
        if let Source::App(application) = &mut self.flows[app as usize].source {
            application.interval_bytes += delivered;
            application.record.failed += u64::from(failed);
            application.closed(number, &counters, losses);
        }
        self.applications.ended.push_back(id);
    }

    /// Schedules an event for the timer of an application, unless one is pending no later.
    fn follow_application(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if let Source::Connection(_) = &flow.source {
            // The timers of its connection use the other events of the flow.
            if let Some(due) = flow.application().and_then(|bulk| bulk.next_timer()) {
                self.agenda.schedule(due, Event::Write(id));
            }
            return;
        }
        if let Source::App(application) = &flow.source
            && let Some(due) = application.app.next_timer()
            && let Some(at) = flow.sender_event.advance(due, self.now)
        {
            self.agenda.schedule(at, Event::Sender(id));
        }
    }

    #[inline(never)]
    pub(super) fn on_application_timer(&mut self, id: u32) {
        let Source::App(application) = &self.flows[id as usize].source else {
            return;
        };
        let timer = application.app.next_timer();
        if timer.is_some_and(|due| due <= self.now) {
            self.notify(id, AppEvent::Timer);
        } else {
            self.follow_application(id);
        }
    }

    /// The client of a bulk transfer may write a block.
    #[inline(never)]
    pub(super) fn on_write(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let timer = flow.application().and_then(|bulk| bulk.next_timer());
        if !flow.stopped && timer.is_some_and(|due| due <= self.now) {
            self.notify(id, AppEvent::Timer);
        }
    }

    /// Stops application `id`: its connections are removed at once.
    #[inline(never)]
    pub(super) fn stop_application(&mut self, id: u32) {
        let Source::App(application) = &mut self.flows[id as usize].source else {
            return;
        };
        self.applications.output.flow = id;
        application
            .app
            .finish(self.now, &mut self.applications.output);
        for slot in application.take_slots() {
            self.end_connection(slot);
        }
    }

    /// Updates the counters of applications from their connections.
    pub(super) fn gather_connections(&mut self, what: Gather) {
        let declared = self.config.flows.len();
        let (flows, slots) = self.flows.split_at_mut(declared);
        if let Gather::Totals = what {
            for flow in &mut *flows {
                if let Source::App(application) = &mut flow.source {
                    application.live_counters = FlowCounters::default();
                }
            }
        }
        for slot in slots {
            let Some(connection) = slot.connection_mut() else {
                continue;
            };
            if let Some((app, _)) = connection.app()
                && let Source::App(application) = &mut flows[app as usize].source
            {
                match what {
                    Gather::Interval => {
                        application.interval_bytes += connection.take_delivered();
                        application.interval.add(&connection.state(self.now));
                    }
                    Gather::Totals => application.live_counters.add(&connection.counters()),
                }
            }
        }
    }

    /// Ends the applications with the run; returns what they report.
    pub(super) fn finish_applications(&mut self) -> AppOutput {
        for slot in self.config.flows.len()..self.flows.len() {
            if let Some(connection) = self.flows[slot].connection()
                && let Some((app, _)) = connection.app()
            {
                let losses =
                    u32::try_from(slot).map(|slot| self.observed.notes.starts.losses_of(slot));
                if let Source::App(application) = &mut self.flows[app as usize].source {
                    application.count_losses(losses.unwrap_or_default());
                }
            }
        }
        let mut output = std::mem::take(&mut self.applications.output);
        for (id, flow) in (0..).zip(&mut self.flows) {
            if let Some(application) = flow.application() {
                output.flow = id;
                application.finish(self.now, &mut output);
            }
        }
        output
    }
}

/// What [`World::gather_connections`] updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gather {
    /// Bytes of this interval.
    Interval,
    /// All counters.
    Totals,
}
