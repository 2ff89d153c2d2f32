; The short way of a call: a PyCFunction (METH_FASTCALL). Words in capitals are filled in by short_call.py.
; Offsets in PyArrayObject: data 16, nd 24, dimensions 32, strides 40, descr 56, flags 64.
; Of the flags, 1 is contiguous, 256 aligned and 1024 writeable.
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
define internal ptr @word(ptr %d, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %d, i64 %k
  %w = load ptr, ptr %p
  ret ptr %w
}
define internal i64 @number(ptr %d, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %d, i64 %k
  %w = load i64, ptr %p
  ret i64 %w
}
define internal i64 @fits(ptr %d, ptr %x, ptr %port) {
  %type_at = getelementptr i8, ptr %x, i64 8
  %type = load ptr, ptr %type_at
  %array = call ptr @word(ptr %d, i64 ARRAY_TYPE)
  %is_array = icmp eq ptr %type, %array
  br i1 %is_array, label %look, label %no
look:
  %nd_at = getelementptr i8, ptr %x, i64 24
  %nd32 = load i32, ptr %nd_at
  %nd = sext i32 %nd32 to i64
  %axes = call i64 @number(ptr %port, i64 0)
  %extra = sub i64 %nd, %axes
  %nd_good = icmp ult i64 %extra, 2
  %descr_at = getelementptr i8, ptr %x, i64 56
  %descr = load ptr, ptr %descr_at
  %dtype = call ptr @word(ptr %d, i64 DTYPE)
  %same_type = icmp eq ptr %descr, %dtype
  %flags_at = getelementptr i8, ptr %x, i64 64
  %flags = load i32, ptr %flags_at
  %aligned32 = and i32 %flags, 256
  %aligned = icmp ne i32 %aligned32, 0
  %ok1 = and i1 %nd_good, %same_type
  %ok2 = and i1 %ok1, %aligned
  br i1 %ok2, label %shape, label %no
shape:
  %dims_at = getelementptr i8, ptr %x, i64 32
  %all_dims = load ptr, ptr %dims_at
  %dims = getelementptr i64, ptr %all_dims, i64 %extra
  %n = call i64 @number(ptr %dims, i64 0)
  %n_port = call i64 @number(ptr %port, i64 1)
  %same_n = icmp eq i64 %n, %n_port
  br i1 %same_n, label %rest, label %no
rest:
  %matrix = icmp eq i64 %axes, 2
  br i1 %matrix, label %second, label %samples
second:
  %m = call i64 @number(ptr %dims, i64 1)
  %m_port = call i64 @number(ptr %port, i64 2)
  %same_m = icmp eq i64 %m, %m_port
  br i1 %same_m, label %samples, label %no
samples:
  %batch = icmp eq i64 %extra, 1
  br i1 %batch, label %many, label %single
many:
  %count = call i64 @number(ptr %all_dims, i64 0)
  %some = icmp sgt i64 %count, 0
  %answer = select i1 %some, i64 %count, i64 -1
  ret i64 %answer
single:
  ret i64 0
no:
  ret i64 -1
}
define internal void @describe(ptr %x, i64 %axes, ptr %row) {
  %data_at = getelementptr i8, ptr %x, i64 16
  %data = load ptr, ptr %data_at
  store ptr %data, ptr %row
  %strides_at = getelementptr i8, ptr %x, i64 40
  %all_strides = load ptr, ptr %strides_at
  %nd_at = getelementptr i8, ptr %x, i64 24
  %nd32 = load i32, ptr %nd_at
  %nd = sext i32 %nd32 to i64
  %extra = sub i64 %nd, %axes
  %strides = getelementptr i64, ptr %all_strides, i64 %extra
  %batch = icmp eq i64 %extra, 1
  %lead = call i64 @number(ptr %all_strides, i64 0)
  %by_sample = select i1 %batch, i64 %lead, i64 0
  %s0 = call i64 @number(ptr %strides, i64 0)
  %r1 = getelementptr i64, ptr %row, i64 1
  %r2 = getelementptr i64, ptr %row, i64 2
  %r3 = getelementptr i64, ptr %row, i64 3
  store i64 %by_sample, ptr %r1
  %matrix = icmp eq i64 %axes, 2
  br i1 %matrix, label %two, label %one
one:
  store i64 0, ptr %r2
  store i64 %s0, ptr %r3
  ret void
two:
  %s1 = call i64 @number(ptr %strides, i64 1)
  store i64 %s0, ptr %r2
  store i64 %s1, ptr %r3
  ret void
}
define internal void @extent(ptr %d, ptr %x, ptr %from, ptr %to) {
  %data_at = getelementptr i8, ptr %x, i64 16
  %data = load i64, ptr %data_at
  %nd_at = getelementptr i8, ptr %x, i64 24
  %nd32 = load i32, ptr %nd_at
  %nd = sext i32 %nd32 to i64
  %dims_at = getelementptr i8, ptr %x, i64 32
  %dims = load ptr, ptr %dims_at
  %strides_at = getelementptr i8, ptr %x, i64 40
  %strides = load ptr, ptr %strides_at
  %item = call i64 @number(ptr %d, i64 ITEM)
  %end = add i64 %data, %item
  br label %axis
axis:
  %k = phi i64 [0, %0], [%k_next, %some]
  %low = phi i64 [%data, %0], [%low_next, %some]
  %high = phi i64 [%end, %0], [%high_next, %some]
  %more = icmp slt i64 %k, %nd
  br i1 %more, label %look, label %done
look:
  %n = call i64 @number(ptr %dims, i64 %k)
  %s = call i64 @number(ptr %strides, i64 %k)
  %nothing = icmp eq i64 %n, 0
  br i1 %nothing, label %empty, label %some
some:
  %last = sub i64 %n, 1
  %span = mul i64 %last, %s
  %down = call i64 @llvm.smin.i64(i64 %span, i64 0)
  %up = call i64 @llvm.smax.i64(i64 %span, i64 0)
  %low_next = add i64 %low, %down
  %high_next = add i64 %high, %up
  %k_next = add i64 %k, 1
  br label %axis
empty:
  store i64 0, ptr %from
  store i64 0, ptr %to
  ret void
done:
  store i64 %low, ptr %from
  store i64 %high, ptr %to
  ret void
}
define internal i1 @apart(ptr %d, ptr %args, i64 %place) {
  %from = alloca i64
  %to = alloca i64
  %other_from = alloca i64
  %other_to = alloca i64
  %y_at = getelementptr ptr, ptr %args, i64 %place
  %y = load ptr, ptr %y_at
  call void @extent(ptr %d, ptr %y, ptr %from, ptr %to)
  %a = load i64, ptr %from
  %b = load i64, ptr %to
  br label %loop
loop:
  %k = phi i64 [0, %0], [%k_next, %next]
  %more = icmp slt i64 %k, %place
  br i1 %more, label %look, label %yes
look:
  %x_at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x_at
  call void @extent(ptr %d, ptr %x, ptr %other_from, ptr %other_to)
  %c = load i64, ptr %other_from
  %e = load i64, ptr %other_to
  %before = icmp ule i64 %e, %a
  %after = icmp uge i64 %c, %b
  %good = or i1 %before, %after
  br i1 %good, label %next, label %no
next:
  %k_next = add i64 %k, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}
define ptr @run(ptr %self, ptr %args, i64 %count) {
  %results = alloca ptr, i64 LARGEST_OUTPUTS
  %shape = alloca i64, i64 3
  %d = getelementptr i8, ptr %self, i64 HEADER
  %inputs = call i64 @number(ptr %d, i64 INPUTS)
  %outputs = call i64 @number(ptr %d, i64 OUTPUTS)
  %ports = getelementptr i64, ptr %d, i64 FIRST_PORT
  %none = call ptr @word(ptr %d, i64 NONE)
  %arrays_all = add i64 %inputs, %outputs
  %words3 = mul i64 %arrays_all, 4
  %words = add i64 %words3, 1
  %table = alloca i64, i64 %words
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %last_one, label %begin
last_one:
  %last_place = sub i64 %count, 1
  %last_at = getelementptr ptr, ptr %args, i64 %last_place
  %last = load ptr, ptr %last_at
  %last_none = icmp eq ptr %last, %none
  br label %begin
begin:
  %with_status = phi i1 [false, %0], [%last_none, %last_one]
  %status_word = zext i1 %with_status to i64
  %m = sub i64 %count, %status_word
  %given = icmp eq i64 %m, %arrays_all
  %alone = icmp eq i64 %m, %inputs
  %strict = call i64 @number(ptr %d, i64 STRICT)
  %loose = icmp eq i64 %strict, 0
  %more_given = and i1 %loose, %given
  %plain = icmp eq i64 %count, %inputs
  %more_fits = or i1 %more_given, %alone
  %loose_fits = and i1 %loose, %more_fits
  %enough = or i1 %plain, %loose_fits
  %own = getelementptr ptr, ptr %args, i64 %inputs
  %written = select i1 %given, ptr %own, ptr %results
  br i1 %enough, label %check, label %refuse
check:
  %i = phi i64 [0, %begin], [%i_next, %checked]
  %n = phi i64 [0, %begin], [%n_next, %checked]
  %checking = icmp slt i64 %i, %m
  br i1 %checking, label %look, label %size
look:
  %x_at = getelementptr ptr, ptr %args, i64 %i
  %x = load ptr, ptr %x_at
  %i_word = mul i64 %i, PORT_WORDS
  %port = getelementptr i64, ptr %ports, i64 %i_word
  %found = call i64 @fits(ptr %d, ptr %x, ptr %port)
  %good = icmp sge i64 %found, 0
  br i1 %good, label %compare, label %refuse
compare:
  %n_next = call i64 @llvm.smax.i64(i64 %n, i64 %found)
  %is_same = icmp eq i64 %n, %found
  %is_input = icmp slt i64 %i, %inputs
  br i1 %is_input, label %compare_in, label %compare_out
compare_in:
  %is_single = icmp eq i64 %found, 0
  %is_first = icmp eq i64 %n, 0
  %easy = or i1 %is_single, %is_first
  %fits_in = or i1 %easy, %is_same
  br i1 %fits_in, label %checked, label %refuse
compare_out:
  %flags_at = getelementptr i8, ptr %x, i64 64
  %flags = load i32, ptr %flags_at
  %useful = and i32 %flags, 1025
  %usable = icmp eq i32 %useful, 1025
  %fits_out = and i1 %is_same, %usable
  br i1 %fits_out, label %compare_memory, label %refuse
compare_memory:
  %alone_there = call i1 @apart(ptr %d, ptr %args, i64 %i)
  br i1 %alone_there, label %checked, label %refuse
checked:
  %i_next = add i64 %i, 1
  br label %check
refuse:
  %incref0 = call ptr @word(ptr %d, i64 INCREF)
  %no = call ptr @word(ptr %d, i64 REFUSAL)
  call void %incref0(ptr %no)
  ret ptr %no
size:
  %largest = call i64 @number(ptr %d, i64 LARGEST)
  %long = icmp sgt i64 %n, %largest
  br i1 %long, label %refuse, label %start
start:
  %samples = call i64 @llvm.smax.i64(i64 %n, i64 1)
  %incref = call ptr @word(ptr %d, i64 INCREF)
  %empty = call ptr @word(ptr %d, i64 EMPTY)
  br i1 %given, label %status_alone, label %create_all
create_all:
  %one = icmp eq i64 %outputs, 1
  %no_status = xor i1 %with_status, true
  %bare = and i1 %one, %no_status
  br i1 %bare, label %arrays, label %tuple
tuple:
  %new_tuple = call ptr @word(ptr %d, i64 NEW_TUPLE)
  %tuple_size = add i64 %outputs, %status_word
  %tuple_made = call ptr %new_tuple(i64 %tuple_size)
  %tuple_failed = icmp eq ptr %tuple_made, null
  br i1 %tuple_failed, label %fail, label %arrays
arrays:
  %holder = phi ptr [null, %create_all], [%tuple_made, %tuple]
  %dtype = call ptr @word(ptr %d, i64 DTYPE)
  %set_item = call ptr @word(ptr %d, i64 SET_ITEM)
  br label %output
output:
  %o = phi i64 [0, %arrays], [%o_next, %next]
  %making = icmp slt i64 %o, %outputs
  br i1 %making, label %create, label %made
create:
  %o_port = add i64 %o, %inputs
  %o_word = mul i64 %o_port, PORT_WORDS
  %port_out = getelementptr i64, ptr %ports, i64 %o_word
  %axes = call i64 @number(ptr %port_out, i64 0)
  %is_batch = icmp sgt i64 %n, 0
  %extra = zext i1 %is_batch to i64
  %nd = add i64 %axes, %extra
  %nd32 = trunc i64 %nd to i32
  store i64 %n, ptr %shape
  %shape_rest = getelementptr i64, ptr %shape, i64 %extra
  %d0 = call i64 @number(ptr %port_out, i64 1)
  store i64 %d0, ptr %shape_rest
  %d1 = call i64 @number(ptr %port_out, i64 2)
  %shape_last = getelementptr i64, ptr %shape_rest, i64 1
  store i64 %d1, ptr %shape_last
  call void %incref(ptr %dtype)
  %y = call ptr %empty(i32 %nd32, ptr %shape, ptr %dtype, i32 0)
  %y_failed = icmp eq ptr %y, null
  br i1 %y_failed, label %drop, label %keep
keep:
  %y_at = getelementptr ptr, ptr %results, i64 %o
  store ptr %y, ptr %y_at
  br i1 %bare, label %next, label %into_tuple
into_tuple:
  %set = call i32 %set_item(ptr %holder, i64 %o, ptr %y)
  br label %next
next:
  %o_next = add i64 %o, 1
  br label %output
made:
  br i1 %with_status, label %status_too, label %fill
status_too:
  store i64 %samples, ptr %shape
  %byte_type = call ptr @word(ptr %d, i64 BYTE_TYPE)
  call void %incref(ptr %byte_type)
  %status_made = call ptr %empty(i32 1, ptr %shape, ptr %byte_type, i32 0)
  %status_failed = icmp eq ptr %status_made, null
  br i1 %status_failed, label %drop, label %status_keep
status_keep:
  %status_set = call i32 %set_item(ptr %holder, i64 %outputs, ptr %status_made)
  br label %fill
status_alone:
  br i1 %with_status, label %status_only, label %fill
status_only:
  store i64 %samples, ptr %shape
  %byte_type2 = call ptr @word(ptr %d, i64 BYTE_TYPE)
  call void %incref(ptr %byte_type2)
  %status_made2 = call ptr %empty(i32 1, ptr %shape, ptr %byte_type2, i32 0)
  %status_failed2 = icmp eq ptr %status_made2, null
  br i1 %status_failed2, label %fail, label %fill
fill:
  %answer = phi ptr [%holder, %made], [%holder, %status_keep], [%none, %status_alone], [%status_made2, %status_only]
  %status = phi ptr [null, %made], [%status_made, %status_keep], [null, %status_alone], [%status_made2, %status_only]
  br label %fill_in
fill_in:
  %f = phi i64 [0, %fill], [%f_next, %fill_one]
  %filling = icmp slt i64 %f, %inputs
  br i1 %filling, label %fill_one, label %fill_out
fill_one:
  %a_at = getelementptr ptr, ptr %args, i64 %f
  %a = load ptr, ptr %a_at
  %f_word = mul i64 %f, 4
  %f_row = getelementptr i64, ptr %table, i64 %f_word
  %f_port_word = mul i64 %f, PORT_WORDS
  %f_port = getelementptr i64, ptr %ports, i64 %f_port_word
  %f_axes = call i64 @number(ptr %f_port, i64 0)
  call void @describe(ptr %a, i64 %f_axes, ptr %f_row)
  %f_next = add i64 %f, 1
  br label %fill_in
fill_out:
  %g = phi i64 [0, %fill_in], [%g_next, %fill_two]
  %more_out = icmp slt i64 %g, %outputs
  br i1 %more_out, label %fill_two, label %fill_status
fill_two:
  %b_at = getelementptr ptr, ptr %written, i64 %g
  %b = load ptr, ptr %b_at
  %g_port = add i64 %g, %inputs
  %g_word = mul i64 %g_port, 4
  %g_row = getelementptr i64, ptr %table, i64 %g_word
  %g_port_word = mul i64 %g_port, PORT_WORDS
  %g_port_at = getelementptr i64, ptr %ports, i64 %g_port_word
  %g_axes = call i64 @number(ptr %g_port_at, i64 0)
  call void @describe(ptr %b, i64 %g_axes, ptr %g_row)
  %g_next = add i64 %g, 1
  br label %fill_out
fill_status:
  %status_place = getelementptr i64, ptr %table, i64 %words3
  store ptr null, ptr %status_place
  %no_mark = icmp eq ptr %status, null
  br i1 %no_mark, label %go, label %mark
mark:
  %bytes_at = getelementptr i8, ptr %status, i64 16
  %bytes = load ptr, ptr %bytes_at
  store ptr %bytes, ptr %status_place
  br label %go
go:
  %wide = call ptr @word(ptr %d, i64 RUN)
  %narrow = call ptr @word(ptr %d, i64 RUN_SINGLE)
  %sole = icmp eq i64 %samples, 1
  %code = select i1 %sole, ptr %narrow, ptr %wide
  %scratch = call ptr @word(ptr %d, i64 SCRATCH)
  %brief = call i64 @number(ptr %d, i64 BRIEF)
  %hold = icmp sle i64 %n, %brief
  %busy_at = call ptr @word(ptr %d, i64 BUSY)
  %busy = load i64, ptr %busy_at
  %taken = icmp ne i64 %busy, 0
  br i1 %taken, label %late, label %work
late:
  %only_late = load ptr, ptr %results
  %have_tuple = icmp ne ptr %answer, null
  %thrown = select i1 %have_tuple, ptr %answer, ptr %only_late
  %is_none = icmp eq ptr %thrown, %none
  br i1 %is_none, label %refuse, label %throw
throw:
  %decref2 = call ptr @word(ptr %d, i64 DECREF)
  call void %decref2(ptr %thrown)
  br label %refuse
work:
  store i64 1, ptr %busy_at
  %record = call ptr @word(ptr %d, i64 RECORD)
  %clock = call ptr @word(ptr %d, i64 CLOCK)
  %clock_id = call i64 @number(ptr %d, i64 CLOCK_ID)
  %clock_32 = trunc i64 %clock_id to i32
  %wait_at = getelementptr i64, ptr %record, i64 1
  %begin_at = getelementptr i64, ptr %record, i64 2
  %end_at = getelementptr i64, ptr %record, i64 4
  %was = load i64, ptr %record
  %wait = load i64, ptr %wait_at
  %was_sole = icmp eq i64 %was, 1
  %again = and i1 %sole, %was_sole
  %waiting = icmp sgt i64 %wait, 0
  %untimed = and i1 %again, %waiting
  %wait_less = sub i64 %wait, 1
  %wait_next = select i1 %untimed, i64 %wait_less, i64 UNTIMED
  store i64 %wait_next, ptr %wait_at
  store i64 %samples, ptr %record
  br i1 %untimed, label %ready, label %begin_time
begin_time:
  %began = call i32 %clock(i32 %clock_32, ptr %begin_at)
  br label %ready
ready:
  br i1 %hold, label %locked, label %unlocked
locked:
  call void %code(ptr %table, i64 0, i64 %samples, ptr %scratch)
  br label %finish
unlocked:
  %save = call ptr @word(ptr %d, i64 SAVE_THREAD)
  %restore = call ptr @word(ptr %d, i64 RESTORE_THREAD)
  %thread = call ptr %save()
  call void %code(ptr %table, i64 0, i64 %samples, ptr %scratch)
  call void %restore(ptr %thread)
  br label %finish
finish:
  br i1 %untimed, label %give, label %end_time
end_time:
  %ended = call i32 %clock(i32 %clock_32, ptr %end_at)
  br label %give
give:
  store i64 0, ptr %busy_at
  %is_held = icmp ne ptr %answer, null
  %only = load ptr, ptr %results
  %result = select i1 %is_held, ptr %answer, ptr %only
  %returns_none = icmp eq ptr %result, %none
  br i1 %returns_none, label %nothing, label %new
nothing:
  call void %incref(ptr %none)
  ret ptr %none
new:
  ret ptr %result
drop:
  %no_holder = icmp eq ptr %holder, null
  br i1 %no_holder, label %fail, label %release
release:
  %decref = call ptr @word(ptr %d, i64 DECREF)
  call void %decref(ptr %holder)
  br label %fail
fail:
  ret ptr null
}
