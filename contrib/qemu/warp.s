/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A guest that asks how late its timer is. It is its own firmware: 64 KiB at the top of memory.
 *
 * WAKES times it sets the local APIC's timer to PERIOD ns, computes for a while without a look at the clock,
 * and halts. With `-icount shift=0,sleep=off` an instruction is 1 ns, idle time is skipped, and the time stamp
 * counter counts ns. So every wake comes the same time after its timer was set. The guest prints this time,
 * for the first wake and for every other that differs from it: "wake ns", in hex, to port 0xe9.
 *
 * From the timer to the halt of wake n it executes 2 * (n % SPINS + 1) + 5 instructions.
 */

        .set    LAPIC, 0xfee00000
        .set    LAPIC_EOI, 0x0b0
        .set    LAPIC_SPURIOUS, 0x0f0
        .set    LAPIC_TIMER, 0x320
        .set    LAPIC_COUNT, 0x380
        .set    LAPIC_DIVIDE, 0x3e0

        .set    DEBUG_PORT, 0xe9
        .set    EXIT_PORT, 0x501

        .set    VECTOR, 0x20
        .set    CODE_SEGMENT, 0x08
        .set    DATA_SEGMENT, 0x10
        .set    STACK, 0x7000

        .set    PERIOD, 40000
        .set    SPINS, 16384

        .globl  _start
_start:
        .code32
protected:
        mov     $DATA_SEGMENT, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $STACK, %esp
        mov     $LAPIC, %edi
        movl    $0x1ff, LAPIC_SPURIOUS(%edi)    /* on */
        movl    $0xb, LAPIC_DIVIDE(%edi)        /* by 1: it counts ns */
        movl    $VECTOR, LAPIC_TIMER(%edi)      /* one shot */
        xor     %ebx, %ebx                      /* the first wake's time */
        xor     %ebp, %ebp                      /* wakes so far */

wake:
        rdtsc
        mov     %eax, %esi
        movl    $PERIOD, LAPIC_COUNT(%edi)
        mov     %ebp, %ecx
        and     $SPINS - 1, %ecx
        inc     %ecx
spin:
        dec     %ecx
        jnz     spin
        sti
        hlt
        cli
        rdtsc
        sub     %esi, %eax
        cmp     %ebx, %eax
        je      same
        test    %ebp, %ebp
        jnz     report
        mov     %eax, %ebx
report:
        mov     %eax, %esi
        mov     %ebp, %eax
        call    print
        mov     $' ', %al
        out     %al, $DEBUG_PORT
        mov     %esi, %eax
        call    print
        mov     $'\n', %al
        out     %al, $DEBUG_PORT
same:
        inc     %ebp
        cmp     $WAKES, %ebp
        jb      wake

        mov     $EXIT_PORT, %dx
        xor     %eax, %eax
        out     %al, %dx
stop:
        hlt
        jmp     stop

print:                                          /* eax, as eight hex digits */
        mov     $8, %ecx
        mov     %eax, %edx
digit:
        rol     $4, %edx
        mov     %edx, %eax
        and     $15, %eax
        mov     %cs:digits(%eax), %al
        out     %al, $DEBUG_PORT
        dec     %ecx
        jnz     digit
        ret

timer:
        movl    $0, LAPIC_EOI(%edi)
        iret

digits: .ascii  "0123456789abcdef"

        .align  8
gdt:    .quad   0
        .quad   0x00cf9b000000ffff              /* code: all of memory, accessed, for the ROM is not written */
        .quad   0x00cf93000000ffff              /* data */
gdt_at: .word   . - gdt - 1
        .long   gdt

gate:   .word   timer - _start                  /* the only entry of the interrupt table that is used */
        .word   CODE_SEGMENT
        .word   0x8e00
        .word   0xf
idt_at: .word   VECTOR * 8 + 7
        .long   gate - VECTOR * 8

        .code16
real:
        cli
        lgdtl   %cs:gdt_at - _start
        lidtl   %cs:idt_at - _start
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $CODE_SEGMENT, $protected

        .org    0xfff0                          /* where the processor starts */
        jmp     real
        .org    0x10000
