//! Simulations on threads of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use sojourn_scenario::plan::ConfigError;

use crate::environment::{Environment, Setup};

/// Simulations that are stepped together.
///
/// A simulation stays on one thread. The result does not depend on the number of threads.
#[derive(Debug)]
pub struct Batch {
    setup: Arc<Setup>,
    size: usize,
    workers: Vec<Worker>,
}

/// A thread and the first of its simulations; the thread owns those up to the first of the next one.
#[derive(Debug)]
struct Worker {
    first: usize,
    size: usize,
    commands: Option<Sender<Command>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker does with its simulations, which are numbered from 0.
#[derive(Debug)]
enum Command {
    /// Starts an episode in a simulation, with a configuration and a seed.
    Reset(usize, usize, u64),
    /// Advances all simulations with these actions.
    Step(Vec<f64>),
}

#[derive(Debug)]
enum Reply {
    Reset(Result<Vec<f64>, ConfigError>),
    /// The numbers of all simulations.
    Step(Vec<f64>),
    /// A simulation panicked.
    Failed,
}

impl Batch {
    /// `size` simulations on at most `threads` threads. Each needs a [`reset`](Self::reset) before the first step.
    ///
    /// # Errors
    /// As [`Setup::check`].
    pub fn new(setup: Setup, size: usize, threads: usize) -> Result<Self, ConfigError> {
        setup.check()?;
        let setup = Arc::new(setup);
        let threads = threads.clamp(1, size.max(1));
        let bounds = |n: usize| n * size / threads;
        let workers = (0..threads).map(|n| {
            let (first, size) = (bounds(n), bounds(n + 1) - bounds(n));
            let (commands, received) = channel();
            let (reply, replies) = channel();
            let setup = Arc::clone(&setup);
            let thread = thread::spawn(move || work(&setup, size, &received, &reply));
            Worker {
                first,
                size,
                commands: Some(commands),
                replies,
                thread: Some(thread),
            }
        });
        let workers = workers.collect();
        Ok(Self {
            setup,
            size,
            workers,
        })
    }

    /// The number of simulations.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// What is simulated.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Starts an episode in simulation `number`: a configuration with a seed, at the end of its warm-up, of which the
    /// numbers are written.
    ///
    /// # Errors
    /// If the configuration is not valid.
    ///
    /// # Panics
    /// If the simulation fails, or if there is no such simulation or configuration.
    pub fn reset(
        &mut self,
        number: usize,
        config: usize,
        seed: u64,
        to: &mut [f64],
    ) -> Result<(), ConfigError> {
        assert!(config < self.setup.configs.len(), "configuration {config}");
        let mut workers = self.workers.iter().rev();
        let worker = workers.find(|worker| worker.first <= number && worker.size > 0);
        let worker = worker.filter(|_| number < self.size);
        let Some(worker) = worker else {
            panic!("there is no simulation {number}");
        };
        worker.send(Command::Reset(number - worker.first, config, seed));
        match worker.replies.recv() {
            Ok(Reply::Reset(reset)) => to.copy_from_slice(&reset?),
            _ => panic!("simulation {number} failed"),
        }
        Ok(())
    }

    /// Advances all simulations by a step. `actions` has those of each simulation, NaN for none; `to` gets the numbers of
    /// each.
    ///
    /// # Panics
    /// If a simulation fails, or a slice has another length than that of the simulations.
    pub fn step(&mut self, actions: &[f64], to: &mut [f64]) {
        let (of_action, columns) = (self.setup.actions(), self.setup.columns());
        assert_eq!(actions.len(), of_action * self.size, "actions");
        assert_eq!(to.len(), columns * self.size, "numbers");
        for worker in &self.workers {
            let (from, until) = (worker.first, worker.first + worker.size);
            let actions = actions[from * of_action..until * of_action].to_vec();
            worker.send(Command::Step(actions));
        }
        for worker in &self.workers {
            match worker.replies.recv() {
                Ok(Reply::Step(numbers)) => {
                    let from = worker.first * columns;
                    to[from..from + numbers.len()].copy_from_slice(&numbers);
                }
                _ => panic!("a simulation failed"),
            }
        }
    }
}

impl Worker {
    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A thread that has ended does not reply, which the caller notices.
            let _ = commands.send(command);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Ends the thread.
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Executes commands until there are no more.
fn work(setup: &Arc<Setup>, size: usize, commands: &Receiver<Command>, replies: &Sender<Reply>) {
    let (of_action, columns) = (setup.actions(), setup.columns());
    let mut environments: Vec<Option<Environment>> = (0..size).map(|_| None).collect();
    while let Ok(command) = commands.recv() {
        let execute = || match command {
            Command::Reset(number, config, seed) => {
                let reset = Environment::new(setup, config, seed).map(|mut environment| {
                    let mut numbers = vec![0.0; columns];
                    environment.measure(&mut numbers);
                    environments[number] = Some(environment);
                    numbers
                });
                Reply::Reset(reset)
            }
            Command::Step(actions) => {
                let mut numbers = vec![0.0; size * columns];
                let each = numbers.chunks_exact_mut(columns);
                for ((n, environment), to) in environments.iter_mut().enumerate().zip(each) {
                    if let Some(environment) = environment {
                        environment.step(&actions[n * of_action..(n + 1) * of_action]);
                        environment.measure(to);
                    }
                }
                Reply::Step(numbers)
            }
        };
        let reply = catch_unwind(AssertUnwindSafe(execute)).unwrap_or(Reply::Failed);
        if replies.send(reply).is_err() {
            return;
        }
    }
}
