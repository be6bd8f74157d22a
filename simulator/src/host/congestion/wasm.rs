// SPDX-License-Identifier: GPL-2.0-or-later
//! Laws in WebAssembly, run by an interpreter.
//!
//! All flows of a thread share one instance. What a law keeps of a flow is a block of its memory,
//! which is put there for a call and taken away afterwards, so that no outcome depends on which
//! flows share an instance. Whatever else a law could keep is refused.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use wasmi::core::TrapCode;
use wasmi::{
    Config, Engine, Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, TypedFunc,
    WasmParams,
};
use wasmparser::{Operator, Parser, Payload};

use super::custom::{FlowLaw, OwnLaw, Sending, Signal};
use super::traits::AckInfo;

/// Bytes of a flow's block, and its address: compilers leave the first 1,024 bytes free.
const BLOCK: usize = 128;
const ADDRESS: usize = 256;
/// The most that a law may have: bytes of code and of memory, and instructions of a call.
const CODE: usize = 1 << 20;
const MEMORY: usize = 1 << 20;
const FUEL: u64 = 100_000;
/// Calls between two looks at the memory beside the block.
const CHECKED: u64 = 1 << 16;

/// Block; time, packets, round trip, mark, packets under way, bytes, `grows`, `round`.
type OnAck = TypedFunc<(u32, u64, u32, u64, u32, u32, u32, u32, u32), ()>;
/// Block; time.
type Other = TypedFunc<(u32, u64), ()>;

/// A module that is a law.
#[derive(Debug)]
pub(super) struct Wasm {
    binary: Arc<[u8]>,
}

impl Wasm {
    /// Checks a module, binary or text.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > CODE {
            return Err(format!("a law in WebAssembly may have {CODE} bytes, not {}", bytes.len()));
        }
        let binary = wat::parse_bytes(bytes)
            .map_err(|error| format!("this is not WebAssembly: {}", one_line(&error)))?;
        let binary: Arc<[u8]> = binary.as_ref().into();
        Instance::new(&binary)?;
        shared(&binary)?;
        Ok(Wasm { binary })
    }
}

/// The first line of an error with its rest, such as the place in a text, behind it.
fn one_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses instructions that change what all flows share besides the memory.
fn shared(binary: &[u8]) -> Result<(), String> {
    for payload in Parser::new(0).parse_all(binary) {
        let Payload::CodeSectionEntry(body) = payload.map_err(|error| one_line(&error))? else {
            continue;
        };
        for operator in body.get_operators_reader().map_err(|error| one_line(&error))? {
            let what = match operator.map_err(|error| one_line(&error))? {
                Operator::GlobalSet { .. } => "a global, as a compiler does without -O2",
                Operator::TableSet { .. }
                | Operator::TableGrow { .. }
                | Operator::TableFill { .. }
                | Operator::TableCopy { .. }
                | Operator::TableInit { .. } => "a table",
                _ => continue,
            };
            return Err(format!(
                "the law writes {what}; all flows would share it: keep it in the flow's block"
            ));
        }
    }
    Ok(())
}

impl OwnLaw for Wasm {
    fn start(&self) -> Result<Box<dyn FlowLaw>, String> {
        Ok(Box::new(WasmFlow { binary: Arc::clone(&self.binary), block: [0; BLOCK] }))
    }

    fn runs_in_parts(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The law of a flow: its block.
#[derive(Debug, Clone)]
struct WasmFlow {
    binary: Arc<[u8]>,
    block: [u8; BLOCK],
}

thread_local! {
    /// The instances of this thread, the first one used last.
    static INSTANCES: RefCell<Vec<(Arc<[u8]>, Instance)>> = const { RefCell::new(Vec::new()) };
}

/// The most instances of a thread: a run has at most four laws.
const INSTANCES_MOST: usize = 4;

impl FlowLaw for WasmFlow {
    fn on(&mut self, signal: &Signal, sending: &mut Sending) -> Result<(), String> {
        INSTANCES.with_borrow_mut(|all| {
            let place = all.iter().position(|(binary, _)| Arc::ptr_eq(binary, &self.binary));
            let place = if let Some(place) = place {
                place
            } else {
                all.truncate(INSTANCES_MOST - 1);
                all.push((Arc::clone(&self.binary), Instance::new(&self.binary)?));
                all.len() - 1
            };
            let called = all[place].1.call(&mut self.block, signal, sending);
            if called.is_err() {
                all.remove(place);
            }
            called
        })
    }

    fn copy(&self) -> Box<dyn FlowLaw> {
        Box::new(self.clone())
    }
}

struct Instance {
    store: Store<StoreLimits>,
    memory: Memory,
    on_ack: OnAck,
    /// In the order of signals.
    on_start: Option<Other>,
    on_mark: Option<Other>,
    on_loss: Option<Other>,
    on_timeout: Option<Other>,
    /// The memory as it was, and calls since.
    image: Vec<u8>,
    calls: u64,
}

impl Instance {
    fn new(binary: &[u8]) -> Result<Self, String> {
        let mut config = Config::default();
        config.consume_fuel(true).wasm_multi_memory(false).wasm_memory64(false);
        let engine = Engine::new(&config);
        let wrong = |error: wasmi::Error| format!("this is not a law: {}", one_line(&error));
        let module = Module::new(&engine, binary).map_err(wrong)?;
        if let Some(import) = module.imports().next() {
            let (module, name) = (import.module(), import.name());
            return Err(format!("a law may import nothing, and this one imports {module}.{name}"));
        }
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).table_elements(1024).build();
        let mut store = Store::new(&engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL).map_err(wrong)?;
        let before = Linker::new(&engine).instantiate(&mut store, &module).map_err(wrong)?;
        let whole = before
            .ensure_no_start(&mut store)
            .map_err(|_| "a law may have no start function".to_owned())?;
        let memory = whole.get_memory(&store, "memory").ok_or("a law must export its memory")?;
        let image = memory.data(&store).to_vec();
        if image.len() < ADDRESS + BLOCK {
            return Err("a law's memory must have a page".to_owned());
        }
        let other = |name| typed(whole, &store, name);
        Ok(Instance {
            on_ack: typed(whole, &store, "on_ack")?.ok_or("a law must export on_ack")?,
            on_start: other("on_start")?,
            on_mark: other("on_mark")?,
            on_loss: other("on_loss")?,
            on_timeout: other("on_timeout")?,
            memory,
            image,
            calls: 0,
            store,
        })
    }

    fn call(
        &mut self,
        block: &mut [u8; BLOCK],
        signal: &Signal,
        sending: &mut Sending,
    ) -> Result<(), String> {
        let other = match signal {
            Signal::Ack(_) => None,
            Signal::Start(_) => Some(self.on_start),
            Signal::Mark(_) => Some(self.on_mark),
            Signal::Loss(_) => Some(self.on_loss),
            Signal::Timeout(_) => Some(self.on_timeout),
        };
        if let Some(None) = other {
            sending.react(signal);
            return Ok(());
        }
        block[..8].copy_from_slice(&sending.window.to_le_bytes());
        block[8..16].copy_from_slice(&sending.pace.to_le_bytes());
        let place = ADDRESS..ADDRESS + BLOCK;
        self.memory.data_mut(&mut self.store)[place.clone()].copy_from_slice(block);
        self.store.set_fuel(FUEL).map_err(|error| one_line(&error))?;
        let ended = match (signal, other.flatten()) {
            (Signal::Ack(ack), _) => self.on_ack.call(&mut self.store, parameters(ack)),
            (_, Some(other)) => other.call(&mut self.store, (ADDRESS as u32, signal.now())),
            (_, None) => Ok(()),
        };
        ended.map_err(|error| trapped(&error))?;
        block.copy_from_slice(&self.memory.data(&self.store)[place]);
        let number = |at: usize| f64::from_le_bytes(std::array::from_fn(|i| block[at + i]));
        *sending = Sending { window: number(0), pace: number(8) };
        self.check_memory()
    }

    /// Refuses a law that writes beside the block, now and then.
    fn check_memory(&mut self) -> Result<(), String> {
        self.calls += 1;
        if !self.calls.is_power_of_two() && self.calls % CHECKED != 0 {
            return Ok(());
        }
        let (now, before, end) = (self.memory.data(&self.store), &self.image, ADDRESS + BLOCK);
        if now.len() == before.len()
            && now[..ADDRESS] == before[..ADDRESS]
            && now[end..] == before[end..]
        {
            return Ok(());
        }
        Err(format!(
            "the law writes memory beside the flow's {BLOCK} bytes; all flows would share it: keep \
             it in these bytes"
        ))
    }
}

/// What `on_ack` gets.
fn parameters(ack: &AckInfo) -> (u32, u64, u32, u64, u32, u32, u32, u32, u32) {
    let AckInfo { now, packets, round_trip, marked, under_way, bytes, grows, round, .. } = *ack;
    let [marked, grows, round] = [marked, grows, round].map(u32::from);
    (ADDRESS as u32, now, packets, round_trip, marked, under_way, bytes.into(), grows, round)
}

/// An exported function, if there is one of this name.
fn typed<P: WasmParams>(
    of: wasmi::Instance,
    store: &Store<StoreLimits>,
    name: &str,
) -> Result<Option<TypedFunc<P, ()>>, String> {
    let Some(function) = of.get_func(store, name) else { return Ok(None) };
    function.typed(store).map(Some).map_err(|_| {
        let parameters = match name {
            "on_ack" => "i32 i64 i32 i64 i32 i32 i32 i32 i32",
            _ => "i32 i64",
        };
        format!("{name} must have the parameters {parameters} and no result")
    })
}

/// What a trap says.
fn trapped(error: &wasmi::Error) -> String {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => format!("it runs longer than {FUEL} instructions"),
        Some(code) => format!("it traps: {}", code.trap_message()),
        None => one_line(error),
    }
}
