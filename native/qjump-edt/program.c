/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF program at a device's egress: it gives each packet of a limited level the first departure
 * time at which the packet fits the level's budget. An fq below holds the packet until then.
 *
 * The rule is that of kmod-patches/sch_qjump.c, applied to assigned times instead of actual
 * departures. Bytes are recorded in slots. A packet is added to the newest slot if that was opened
 * less than a quantum q = T / 60 before the packet's time, otherwise to a new one; the slot's stamp
 * becomes that time. A slot expires at stamp + T. A packet of c bytes gets the first time, no
 * earlier than now and the latest time assigned, at which the bytes in all slots plus c do not
 * exceed B.
 *
 * Times never decrease. So every byte with a time in a window of length T that ends with a packet
 * was counted when that packet got its time: no more than B bytes have times in [t, t + T), for any
 * t. If all slots are in use, the oldest was opened 64 q earlier and has expired.
 *
 * R6 is the packet, R7 its level, R8 its cost, R9 the current time and later the packet's time.
 */
#include "edt.h"

#include "../common/common.h"

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9 };
enum { PASSED_ON = -1, SHOT = 2 }; /* verdicts: continue with other programs and clsact, or drop */
enum { DELIVERY_MONO = 1 };
enum label { PASS, DROPPED, OVERSIZE, FULL, FITTING, FITS, OPEN, FRESH, JOIN, GIVEN, LABELS };

#define OF_LEVEL(field) ((int16_t)offsetof(struct level, field))
#define OF_PACKET(field) ((int16_t)offsetof(struct __sk_buff, field))

struct code {
	struct bpf_insn *insn;
	size_t count;
	int map;
	int place[LABELS]; /* index of the instruction at each label */
	enum label target[MAX_INSNS]; /* of each jump; LABELS: not a jump to a label */
};

static void emit(struct code *code, uint8_t operation, int to, int from, int16_t offset,
    int32_t value)
{
	if (code->count == MAX_INSNS)
		fail("the program is too long");
	code->insn[code->count++] = (struct bpf_insn){
		.code = operation, .dst_reg = to & 15, .src_reg = from & 15, .off = offset, .imm = value,
	};
}

static void set(struct code *code, int to, int32_t value)
{
	emit(code, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

static void move(struct code *code, int to, int from)
{
	emit(code, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

/* to = to OPERATION from; operation is BPF_ADD, for example. */
static void alu(struct code *code, uint8_t operation, int to, int from)
{
	emit(code, BPF_ALU64 | operation | BPF_X, to, from, 0, 0);
}

static void alu_imm(struct code *code, uint8_t operation, int to, int32_t value)
{
	emit(code, BPF_ALU64 | operation | BPF_K, to, 0, 0, value);
}

static void load(struct code *code, uint8_t size, int to, int base, int16_t offset)
{
	emit(code, BPF_LDX | BPF_MEM | size, to, base, offset, 0);
}

static void store(struct code *code, int base, int16_t offset, int from)
{
	emit(code, BPF_STX | BPF_MEM | BPF_DW, base, from, offset, 0);
}

/* Load the address of the state into R1. */
static void load_state(struct code *code)
{
	emit(code, BPF_LD | BPF_IMM | BPF_DW, R1, BPF_PSEUDO_MAP_VALUE, 0, code->map);
	emit(code, 0, 0, 0, 0, 0);
}

static void place_label(struct code *code, enum label label)
{
	code->place[label] = (int)code->count;
}

static void jump(struct code *code, enum label label)
{
	code->target[code->count] = label;
	emit(code, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

/* Jump if a OPERATION b; operation is BPF_JGT, for example. */
static void jump_if(struct code *code, int a, uint8_t operation, int b, enum label label)
{
	code->target[code->count] = label;
	emit(code, BPF_JMP | operation | BPF_X, a, b, 0, 0);
}

static void jump_if_value(struct code *code, int a, uint8_t operation, int32_t b, enum label label)
{
	code->target[code->count] = label;
	emit(code, BPF_JMP | operation | BPF_K, a, 0, 0, b);
}

/* Skip the next instruction if a OPERATION b. */
static void skip_if(struct code *code, int a, uint8_t operation, int b)
{
	emit(code, BPF_JMP | operation | BPF_X, a, b, 1, 0);
}

static void call(struct code *code, enum bpf_func_id function)
{
	emit(code, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

static void leave(struct code *code, int32_t verdict)
{
	set(code, R0, verdict);
	emit(code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* field += by, not atomically: hold the lock. */
static void add_to(struct code *code, int16_t field, int by, int scratch)
{
	load(code, BPF_DW, scratch, R7, field);
	alu(code, BPF_ADD, scratch, by);
	store(code, R7, field, scratch);
}

static void one_more(struct code *code, int16_t field)
{
	load(code, BPF_DW, R2, R7, field);
	alu_imm(code, BPF_ADD, R2, 1);
	store(code, R7, field, R2);
}

/*
 * Turn `index` into the address, less the array's offset in the level, of an element of 2^shift
 * bytes; mask: number of elements - 1.
 */
static void element(struct code *code, int index, int32_t mask, int32_t shift)
{
	alu_imm(code, BPF_AND, index, mask);
	alu_imm(code, BPF_LSH, index, shift);
	alu(code, BPF_ADD, index, R7);
}

static void unlock(struct code *code)
{
	load_state(code);
	call(code, BPF_FUNC_spin_unlock);
}

static void find_level(struct code *code, const struct layout *layout)
{
	move(code, R6, R1);
	load(code, BPF_W, R2, R6, OF_PACKET(priority));
	emit(code, BPF_JMP | BPF_JLE | BPF_K, R2, 0, 1, PRIORITIES);
	set(code, R2, PRIORITIES);
	load_state(code);
	alu(code, BPF_ADD, R2, R1);
	load(code, BPF_B, R2, R2, (int16_t)offsetof(struct state, priomap));
	alu_imm(code, BPF_AND, R2, LEVELS - 1);
	alu_imm(code, BPF_MUL, R2, (int32_t)layout->stride);
	move(code, R7, R1);
	alu(code, BPF_ADD, R7, R2);
	alu_imm(code, BPF_ADD, R7, (int32_t)offsetof(struct state, levels));
	load(code, BPF_DW, R5, R7, OF_LEVEL(budget));
	jump_if_value(code, R5, BPF_JEQ, 0, PASS);
}

/*
 * Compute the cost in bytes on the wire. A GSO packet costs as much as its segments, including all
 * headers (wire_len); mpu is added once, as its last segment may be very short.
 */
static void find_cost(struct code *code)
{
	load(code, BPF_W, R8, R6, OF_PACKET(wire_len));
	load(code, BPF_W, R3, R6, OF_PACKET(gso_segs));
	emit(code, BPF_JMP | BPF_JGE | BPF_K, R3, 0, 1, 1);
	set(code, R3, 1);
	load(code, BPF_DW, R2, R7, OF_LEVEL(mpu));
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, R3, 0, 1, 1);
	alu(code, BPF_ADD, R8, R2);
	load(code, BPF_DW, R4, R7, OF_LEVEL(overhead));
	alu(code, BPF_MUL, R4, R3);
	alu(code, BPF_ADD, R8, R4);
	alu(code, BPF_MUL, R2, R3);
	skip_if(code, R8, BPF_JGE, R2);
	move(code, R8, R2);
	jump_if(code, R8, BPF_JGT, R5, OVERSIZE);
}

/* Drop the packet if the one that came `limit` packets earlier has not departed yet. */
static void check_limit(struct code *code, const struct layout *layout)
{
	call(code, BPF_FUNC_ktime_get_ns);
	move(code, R9, R0);
	load_state(code);
	call(code, BPF_FUNC_spin_lock);
	load(code, BPF_DW, R1, R7, OF_LEVEL(packets));
	load(code, BPF_DW, R2, R7, OF_LEVEL(limit));
	alu(code, BPF_SUB, R1, R2);
	element(code, R1, (int32_t)layout->ring - 1, 3);
	load(code, BPF_DW, R2, R1, OF_LEVEL(time));
	jump_if(code, R2, BPF_JGT, R9, FULL);
}

/* Forget the oldest slot; leave its address in `scratch` and its bytes in R3. */
static void forget_oldest(struct code *code, int scratch)
{
	load(code, BPF_DW, scratch, R7, OF_LEVEL(oldest));
	move(code, R3, scratch);
	alu_imm(code, BPF_ADD, R3, 1);
	store(code, R7, OF_LEVEL(oldest), R3);
	element(code, scratch, SLOTS - 1, 4);
	load(code, BPF_DW, R3, scratch, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, bytes));
	load(code, BPF_DW, R2, R7, OF_LEVEL(used));
	alu(code, BPF_SUB, R2, R3);
	store(code, R7, OF_LEVEL(used), R2);
}

/* Compute in R1 the first time at which the packet fits. */
static void find_time(struct code *code)
{
	move(code, R1, R9);
	load(code, BPF_DW, R2, R7, OF_LEVEL(last));
	skip_if(code, R1, BPF_JGE, R2);
	move(code, R1, R2);
	set(code, R5, SLOTS + 1);
	place_label(code, FITTING);
	alu_imm(code, BPF_SUB, R5, 1); /* a bound for the verifier */
	jump_if_value(code, R5, BPF_JEQ, 0, FITS);
	load(code, BPF_DW, R2, R7, OF_LEVEL(used));
	alu(code, BPF_ADD, R2, R8);
	load(code, BPF_DW, R3, R7, OF_LEVEL(budget));
	jump_if(code, R2, BPF_JLE, R3, FITS);
	forget_oldest(code, R4);
	load(code, BPF_DW, R2, R4, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, last));
	load(code, BPF_DW, R3, R7, OF_LEVEL(window));
	alu(code, BPF_ADD, R2, R3);
	jump_if(code, R1, BPF_JGE, R2, FITTING);
	move(code, R1, R2);
	jump(code, FITTING);
	place_label(code, FITS);
	store(code, R7, OF_LEVEL(last), R1);
}

static void charge(struct code *code)
{
	load(code, BPF_DW, R5, R7, OF_LEVEL(next));
	load(code, BPF_DW, R3, R7, OF_LEVEL(oldest));
	jump_if(code, R5, BPF_JEQ, R3, FRESH);
	load(code, BPF_DW, R4, R7, OF_LEVEL(end));
	jump_if(code, R1, BPF_JLT, R4, JOIN);
	move(code, R4, R5);
	alu(code, BPF_SUB, R4, R3);
	jump_if_value(code, R4, BPF_JLT, SLOTS, FRESH);
	forget_oldest(code, R4);
	place_label(code, FRESH);
	load(code, BPF_DW, R4, R7, OF_LEVEL(quantum));
	alu(code, BPF_ADD, R4, R1);
	store(code, R7, OF_LEVEL(end), R4);
	move(code, R4, R5);
	alu_imm(code, BPF_ADD, R5, 1);
	store(code, R7, OF_LEVEL(next), R5);
	element(code, R4, SLOTS - 1, 4);
	set(code, R3, 0);
	store(code, R4, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, bytes), R3);
	place_label(code, JOIN);
	alu_imm(code, BPF_SUB, R5, 1);
	element(code, R5, SLOTS - 1, 4);
	store(code, R5, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, last), R1);
	load(code, BPF_DW, R3, R5, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, bytes));
	alu(code, BPF_ADD, R3, R8);
	store(code, R5, OF_LEVEL(slot) + (int16_t)offsetof(struct slot, bytes), R3);
	add_to(code, OF_LEVEL(used), R8, R3);
}

static void count(struct code *code, const struct layout *layout)
{
	load(code, BPF_DW, R4, R7, OF_LEVEL(packets));
	move(code, R3, R4);
	alu_imm(code, BPF_ADD, R3, 1);
	store(code, R7, OF_LEVEL(packets), R3);
	element(code, R4, (int32_t)layout->ring - 1, 3);
	store(code, R4, OF_LEVEL(time), R1);
	add_to(code, OF_LEVEL(bytes), R8, R3);
	jump_if(code, R1, BPF_JLE, R9, GIVEN);
	one_more(code, OF_LEVEL(throttled));
	place_label(code, GIVEN);
	move(code, R9, R1);
	unlock(code);
}

/*
 * Set the time with its clock, as Linux 7's fq logs times of unspecified clock. Only IP packets can
 * specify one; write the plain time stamp of others.
 */
static void give_time(struct code *code)
{
	move(code, R1, R6);
	move(code, R2, R9);
	set(code, R3, DELIVERY_MONO);
	call(code, BPF_FUNC_skb_set_tstamp);
	jump_if_value(code, R0, BPF_JEQ, 0, PASS);
	store(code, R6, OF_PACKET(tstamp), R9);
	place_label(code, PASS);
	leave(code, PASSED_ON);
}

static void drops(struct code *code)
{
	place_label(code, FULL);
	one_more(code, OF_LEVEL(drops));
	unlock(code);
	jump(code, DROPPED);
	place_label(code, OVERSIZE);
	set(code, R2, 1);
	emit(code, BPF_STX | BPF_ATOMIC | BPF_DW, R7, R2, OF_LEVEL(oversize), BPF_ADD);
	place_label(code, DROPPED);
	leave(code, SHOT);
}

size_t assemble(struct bpf_insn *to, int map, const struct layout *layout)
{
	struct code code = { .insn = to, .map = map };

	for (size_t i = 0; i < MAX_INSNS; i++)
		code.target[i] = LABELS;
	find_level(&code, layout);
	find_cost(&code);
	check_limit(&code, layout);
	find_time(&code);
	charge(&code);
	count(&code, layout);
	give_time(&code);
	drops(&code);
	for (size_t i = 0; i < code.count; i++)
		if (code.target[i] != LABELS)
			to[i].off = (int16_t)(code.place[code.target[i]] - (int)i - 1);
	return code.count;
}
