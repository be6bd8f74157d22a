// SPDX-License-Identifier: GPL-2.0
/*
 * A clock that runs slower than the processor's, by a factor, from now on
 *
 * In a machine whose time stamp counter counts instructions (QEMU's -icount,
 * one a nanosecond), code costs time: a packet some tens of microseconds, which
 * are nothing on a link of 10 Mb/s and everything on one of 10 Gb/s. With a
 * factor of 1000 an instruction takes a picosecond of the kernel's time, and
 * all timeouts of the kernel and of programs keep the values that they have.
 *
 * A clocksource tells that the counter runs factor times as fast as it does.
 * The clock event device is given a multiplier to match, so that a timer
 * which is due in a second is due after factor seconds of the machine's.
 *
 * The device is private to the kernel's tick code. A kprobe sees it where it
 * is programmed for the next event; no symbol is read that is not exported.
 *
 * For one processor. The scheduler's own clock stays as it is: it measures
 * what a program computes, not what it waits for. There is no way back, hence
 * no exit function.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <asm/tsc.h>

/* Beyond it the counter's rate in kHz, factor million, leaves 32 bits */
#define DILATE_MOST		4000

/*
 * How far ahead, on the machine's clock, an event may be set. Later ones are
 * set again when nothing was due. QEMU counts the instructions between two
 * events in 32 bits with a sign when it records or replays.
 */
#define DILATE_AHEAD_NS		NSEC_PER_SEC

static unsigned int factor = 1;
module_param(factor, uint, 0444);
MODULE_PARM_DESC(factor, "how many times slower than the counter the clock runs, 1 to 4000");

static struct clock_event_device *device;

static u64 dilated_read(struct clocksource *cs)
{
	return rdtsc_ordered();
}

static struct clocksource dilated = {
	.name = "dilated",
	.rating = 499,	/* above the counter's own, as "perfect" as any */
	.read = dilated_read,
	.mask = CLOCKSOURCE_MASK(64),
	.flags = CLOCK_SOURCE_IS_CONTINUOUS | CLOCK_SOURCE_VALID_FOR_HRES,
	.vdso_clock_mode = VDSO_CLOCKMODE_TSC,
	.owner = THIS_MODULE,
};

static int program_event(struct kprobe *probe, struct pt_regs *regs)
{
	struct clock_event_device *programmed = (void *)regs_get_kernel_argument(regs, 0);

	if (!READ_ONCE(device))
		WRITE_ONCE(device, programmed);
	return 0;
}

/* The device that is programmed for the next event: any sleep makes that happen */
static int find_device(void)
{
	struct kprobe probe = {
		.symbol_name = "clockevents_program_event",
		.pre_handler = program_event,
	};
	int err = register_kprobe(&probe);

	if (err)
		return err;
	usleep_range(100, 101);
	unregister_kprobe(&probe);
	return device ? 0 : -ENODEV;
}

/* With interrupts off, on the processor whose device it is */
static void dilate_device(void)
{
	u64 ahead = mul_u64_u32_shr(DILATE_AHEAD_NS, device->mult, device->shift);
	u64 mult = (u64)device->mult * factor;
	u32 shift = device->shift;

	for (; mult >> 31; mult >>= 1)
		shift--;
	device->mult = mult;
	device->shift = shift;
	device->max_delta_ticks = min_t(u64, device->max_delta_ticks, ahead);
	device->max_delta_ns = div_u64(device->max_delta_ticks << shift, mult);
	device->min_delta_ns = div_u64(device->min_delta_ticks << shift, mult) + 1;
}

static int __init dilate_init(void)
{
	unsigned long flags;
	int err;

	if (!factor || factor > DILATE_MOST) {
		pr_err("factor %u is out of range: use 1 to %u\n", factor, DILATE_MOST);
		return -EINVAL;
	}
	if (num_online_cpus() > 1 || (u64)tsc_khz * factor > U32_MAX) {
		pr_err("for one processor, of at most %llu kHz\n", div_u64(U32_MAX, factor));
		return -EOPNOTSUPP;
	}
	err = find_device();
	if (err)
		return err;
	err = clocksource_register_khz(&dilated, tsc_khz * factor);
	if (err)
		return err;
	/* Until here events come too early, and nothing is due */
	local_irq_save(flags);
	dilate_device();
	local_irq_restore(flags);
	return 0;
}

module_init(dilate_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a clock slower than the processor's, for networks faster than the processor");
