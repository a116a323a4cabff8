//! Queues in shared libraries: the binary interface, a macro that exports a queue, and the loader.
//!
//! A plug-in is a crate of its own with `crate-type = ["cdylib"]`. It declares its parameters and its queue as
//! the queues of Sojourn do and exports them by [`plugin!`]; the library that cargo builds then stands wherever
//! a queue is named: `sojourn compare fq_codel './target/release/libramp.so low 2ms'`. A program in C or C++
//! implements the same interface, `include/sojourn_queue.h`, which [`abi`] mirrors.
//!
//! The packets stay with Sojourn: a plug-in works on [`Ticket`]s. A panic in it ends the run with its message.
//!
//! `guest` is the side of the plug-in, and `host`, with the feature of that name, the side of Sojourn. They are
//! the only places of the workspace where code of two programs meets, and therefore `unsafe`.

pub mod abi;
#[expect(unsafe_code, reason = "its functions are called with raw pointers")]
mod guest;
#[cfg(feature = "host")]
#[expect(unsafe_code, reason = "it calls the functions of a library")]
pub mod host;

pub use sojourn_qdisc::*;

pub use guest::{WithHeaders, check, declaration, report_panics_by_message};

/// Exports the queue with these parameters as the plug-in of the library.
///
/// `plugin!(RampParams)` gives the queue sizes, ECN fields, DSCPs and flows of packets. A queue that calls
/// [`Packet::transport`] needs `plugin!(RampParams, headers)`, which copies the headers behind that of IP too.
///
/// ```
/// use sojourn_plugin::parameters::{Kind, Params, parameters};
/// use sojourn_plugin::*;
///
/// parameters! {
///     /// Parameters of the queue.
///     #[derive(Clone, Debug)]
///     pub struct ShortParams {
///         /// Maximum number of packets.
///         pub limit: usize = 10 => packets(1, 1_000), "this example";
///     }
/// }
///
/// impl Params for ShortParams {
///     type Queue<P: Packet> = DropTail<P>;
///
///     const KINDS: &'static [Kind<Self>] = &[Kind {
///         name: "short",
///         class: None,
///         summary: "A short FIFO",
///         source: "this example",
///         reconstruction: None,
///         profiles: &[],
///         start: Self::default,
///         parameters: Self::PARAMETERS,
///     }];
///
///     fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> DropTail<P> {
///         let limit = Limit::Packets(self.limit);
///         DropTailParams { limit, ..DropTailParams::PFIFO }.build(link, rng)
///     }
/// }
///
/// plugin!(ShortParams);
/// # fn main() {
/// check(&ShortParams::default());
/// # }
/// ```
#[macro_export]
macro_rules! plugin {
    ($params:ty) => {
        $crate::plugin!(@ $params, $crate::Ticket);
    };
    ($params:ty, headers) => {
        $crate::plugin!(@ $params, $crate::WithHeaders);
    };
    (@ $params:ty, $packet:ty) => {
        /// What Sojourn looks up in this library.
        #[allow(unsafe_code, reason = "the name of a symbol is a promise that the linker cannot check")]
        #[unsafe(no_mangle)]
        pub extern "C" fn sojourn_plugin() -> *const $crate::abi::Queue {
            static DECLARATION: ::std::sync::OnceLock<$crate::abi::Queue> = ::std::sync::OnceLock::new();
            DECLARATION.get_or_init(|| {
                $crate::report_panics_by_message();
                $crate::declaration::<$params, $packet>(env!("CARGO_PKG_VERSION"))
            })
        }
    };
}
