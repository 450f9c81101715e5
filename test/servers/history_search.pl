# history_search.pl SEED COUNT FOLDER - writes COUNT small random histories of a lock to FOLDER, and one line "FILE VERDICT" for each:
# whether it is linearizable as the mutex of Knossos, which has no owner. The search tries all orders (Wing and Gong), so it needs
# none of the reasons on which history.awk rests.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
use strict;
use warnings;

my ($seed, $count, $folder) = @ARGV;
srand $seed;

# Three clients that call at random. Most acquires are granted only while nobody holds the lock: about half of the histories are
# linearizable. A client whose outcome is unknown is replaced by one of another number.
sub random_history {
    my @clients = map { { process => $_, state => 'idle' } } 0 .. 2;
    my ($next, @events) = 3;
    for (1 .. 6 + rand 20) {
        my $client = $clients[rand @clients];
        my ($process, $state) = @$client{qw(process state)};
        my $held = grep { $_->{state} eq 'holds' } @clients;
        if ($state eq 'idle') {
            push @events, [$process, 'invoke', 'acquire'];
            $client->{state} = 'acquiring';
        } elsif ($state eq 'holds') {
            push @events, [$process, 'invoke', 'release'];
            $client->{state} = 'releasing';
        } elsif (rand() < 0.1) {
            push @events, [$process, 'info', $state eq 'acquiring' ? 'acquire' : 'release'];
            %$client = (process => $next++, state => 'idle');
        } elsif ($state eq 'releasing') {
            push @events, [$process, 'ok', 'release'];
            $client->{state} = 'idle';
        } elsif ($held ? rand() < 0.3 : rand() < 0.8) {
            push @events, [$process, 'ok', 'acquire'];
            $client->{state} = 'holds';
        } else {
            push @events, [$process, 'fail', 'acquire'];
            $client->{state} = 'idle';
        }
    }
    return @events;
}

# Operations: [f, line of the invoke, line of the ok or infinity, whether it has taken effect for certain].
sub operations {
    my (%open, @operations);
    my $line = 0;
    for (@_) {
        my ($process, $type, $f) = @$_;
        $line++;
        if ($type eq 'invoke') {
            push @operations, $open{$process} = [$f, $line, 9**9**9, 0];
        } elsif ($type eq 'ok') {
            @{$open{$process}}[2, 3] = ($line, 1);
        } elsif ($type eq 'fail') {
            my $failed = $open{$process};
            @operations = grep { $_ != $failed } @operations;
        }
    }
    return @operations;
}

sub linearizable {
    my ($locked, @left) = @_;
    my @certain = sort { $a <=> $b } map { $_->[2] } grep { $_->[3] } @left;
    return 1 unless @certain;
    for my $one (@left) {
        next if $one->[1] > $certain[0] || ($one->[0] eq 'acquire') == $locked;
        return 1 if linearizable(!$locked, grep { $_ != $one } @left);
    }
    return 0;
}

for my $number (1 .. $count) {
    my @events = random_history();
    redo unless grep { $_->[1] eq 'ok' } @events;
    my ($file, $line) = (sprintf('%s/%05d.edn', $folder, $number), 0);
    open my $out, '>', $file or die "$file: $!";
    for (@events) {
        printf $out "{:process %d :type :%s :f :%s :value nil :time %d :index %d}\n", @$_, 10 * $line, $line;
        $line++;
    }
    close $out or die "$file: $!";
    print "$file: ", linearizable(0, operations(@events)) ? '' : 'NOT ', "linearizable\n";
}
